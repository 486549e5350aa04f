-- Tables of a store, for SQLite and PostgreSQL alike: SQLite reads BIGINT as INTEGER and DOUBLE PRECISION as REAL.
CREATE TABLE esbas_version (version BIGINT NOT NULL);
CREATE TABLE esbas_study (
    id BIGINT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,  -- JSON: the selector and the settings
    created DOUBLE PRECISION NOT NULL
);
CREATE TABLE esbas_event (
    study BIGINT NOT NULL REFERENCES esbas_study (id),
    seq BIGINT NOT NULL,  -- 1, 2, 3, ... without gaps
    kind TEXT NOT NULL,
    number BIGINT,  -- of the choice
    arm TEXT,
    value DOUBLE PRECISION,
    propensity DOUBLE PRECISION,
    epoch BIGINT,
    at DOUBLE PRECISION NOT NULL,  -- seconds since 1970, never decreasing
    key TEXT,  -- what the client calls its request
    data TEXT,  -- JSON: what only some kinds have
    PRIMARY KEY (study, seq)
);
CREATE UNIQUE INDEX esbas_event_number ON esbas_event (study, number, kind);
CREATE UNIQUE INDEX esbas_event_key ON esbas_event (study, key);
CREATE TABLE esbas_snapshot (
    study BIGINT NOT NULL REFERENCES esbas_study (id),
    seq BIGINT NOT NULL,  -- of the last event that the state contains
    state TEXT NOT NULL,  -- JSON
    PRIMARY KEY (study, seq)
);
INSERT INTO esbas_version VALUES (1);
