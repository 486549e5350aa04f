"""Tokens, limits, and requests that are refused."""

import contextlib
import hashlib
import json
import os
import socket
from urllib.parse import urlsplit

import pytest

import esbas
from esbas.cli import main
from esbas.errors import InvalidValueError, ServiceError, TrustError
from esbas.studies.client import Client
from esbas.studies.server.settings import ServiceLimits
from esbas.studies.server.tokens import TokenFile, read_tokens
from processes import wait_until
from studies.server.serving import ARMS, error_of, path_of, send, serving

WRITE = "write-0123456789abcdef"
READ = "read-0123456789abcdef"
OLD = "old-0123456789abcdef"


def bearer(token):
    return {"authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """The URL of a service with tokens, and the file of its tokens."""
    folder = tmp_path_factory.mktemp("guarded")
    file = folder / "tokens.toml"
    file.write_text(
        f"""
        [[token]]
        name = "bot"
        scope = "write"
        token = "{WRITE}"

        [[token]]
        name = "board"
        scope = "read"
        sha256 = "{hashlib.sha256(READ.encode()).hexdigest()}"
        expires = 2999-01-01

        [[token]]
        name = "left"
        scope = "write"
        token = "{OLD}"
        expires = 2020-01-01T00:00:00Z
        """
    )
    with serving(f"sqlite:///{folder}/studies.db", tokens=TokenFile(file)) as url:
        yield url, file


def test_tokens_decide_who_may_do_what(guarded):
    url, _ = guarded
    body = {"name": "guarded", "selector": "uniform", "arms": ARMS}
    for headers in (
        {},
        bearer("wrong"),
        bearer(OLD),
        bearer(""),
        {"authorization": f"Basic {WRITE}"},
        bearer("ä"),
    ):
        encoded = {name: text.encode() for name, text in headers.items()}
        for method, path, sent in (
            ("POST", "/v1/studies", body),
            ("GET", "/v1/studies", None),
            ("GET", "/v1/nothing", None),
        ):
            answer = send(url, method, path, sent, encoded)
            assert error_of(answer) == (401, "Unauthorized")
            assert answer[1]["www-authenticate"] == "Bearer"
    assert error_of(send(url, "POST", "/v1/studies", body, bearer(READ))) == (403, "Forbidden")
    assert send(url, "POST", "/v1/studies", body, bearer(WRITE))[0] == 200
    assert send(url, "GET", path_of("guarded"), headers=bearer(READ))[0] == 200
    for path in ("/", "/docs", "/healthz", "/openapi.json", "/favicon.ico"):
        assert send(url, "GET", path)[0] in (200, 204)
    with Client(url, token=READ) as reader:
        study = reader.existing_study("guarded")
        assert study.arms == tuple(ARMS)
        with pytest.raises(ServiceError, match="a token with the scope write"):
            study.ask()
    with (
        Client(url, token="wrong") as stranger,
        pytest.raises(ServiceError, match="The token of the request is unknown"),
    ):
        stranger.studies()


def test_the_token_file_is_read_again_when_it_changes(guarded):
    url, file = guarded
    before = file.read_text()
    new = "new-0123456789abcdef"
    try:
        file.write_text(f'[[token]]\nname = "new"\nscope = "read"\ntoken = "{new}"\n')
        assert send(url, "GET", "/v1/studies", headers=bearer(new))[0] == 200
        assert send(url, "GET", "/v1/studies", headers=bearer(WRITE))[0] == 401
        file.write_text("[[token")
        assert error_of(send(url, "GET", "/v1/studies", headers=bearer(new))) == (
            503,
            "InvalidValueError",
        )
        file.unlink()
        assert error_of(send(url, "GET", "/v1/studies", headers=bearer(new))) == (503, "FileError")
    finally:
        file.write_text(before)
    assert send(url, "GET", "/v1/studies", headers=bearer(WRITE))[0] == 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "must consist of tables"),
        ("token = 3", "must consist of tables"),
        ("[[token", "must be TOML"),
        ("\udcff", "must be TOML"),
        (
            '[[token]]\nname = "a"\nscope = "all"\ntoken = "0123456789abcdef"',
            'the scope "read" or "write"',
        ),
        ('[[token]]\nname = "a"\nscope = "read"\ntoken = "short"', "at least 16 characters"),
        ('[[token]]\nname = "a"\nscope = "read"\nsha256 = "zz"', "at least 16 characters"),
        (f'[[token]]\nname = "a"\nscope = "read"\nsha256 = "{"z" * 64}"', "at least 16 characters"),
        ('[[token]]\nname = "a"\nscope = "read"', "both or neither of token and sha256"),
        ('[[token]]\nname = "a"\nscop = "read"\ntoken = "0123456789abcdef"', "unknown keys scop"),
        (
            '[[token]]\nname = "a"\nscope = "read"\ntoken = "0123456789abcdef"\nexpires = "soon"',
            "must expire at a time",
        ),
        (
            '[[token]]\nname = "a"\nscope = "read"\ntoken = "0123456789abcdef"\nexpires = 07:32:00',
            "must expire at a time",
        ),
        (
            2 * '[[token]]\nname = "a"\nscope = "read"\ntoken = "0123456789abcdef"\n',
            "Every token must be listed once",
        ),
    ],
)
def test_a_token_file_with_a_mistake_is_one_sentence_without_the_token(text, message):
    with pytest.raises(InvalidValueError, match=message) as caught:
        read_tokens(text.encode("utf-8", "surrogateescape"), "tokens.toml")
    assert "0123456789abcdef" not in str(caught.value)


def test_large_bodies_are_refused_before_they_are_sent(url):
    """By the header Content-Length, and while they arrive in chunks."""
    parts = urlsplit(url)
    for header, data in (
        (b"content-length: 100000000", b""),
        (b"transfer-encoding: chunked", b"100000\r\n" + b"x" * 0x100000),
    ):
        with socket.create_connection((parts.hostname, parts.port), 60) as connection:
            head = (
                b"POST /v1/studies HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                b"content-type: application/json\r\n" + header + b"\r\n\r\n"
            )
            connection.sendall(head)
            with contextlib.suppress(OSError):
                connection.sendall(data)
            answer = connection.makefile("rb").readline()
            assert b" 413 " in answer


def test_a_body_that_never_arrives_is_given_up(store):
    with serving(store, limits=ServiceLimits(body_seconds=0.05)) as url:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), 60) as connection:
            connection.sendall(
                b"POST /v1/studies HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 10\r\n\r\n{"
            )
            assert b" 408 " in connection.makefile("rb").readline()


def test_too_many_requests_wait(store):
    with serving(store, limits=ServiceLimits(rate=1.0)) as url:
        answers = [send(url, "GET", "/v1/studies") for _ in range(8)]
        refused = [answer for answer in answers if answer[0] == 429]
        assert len(refused) >= 3
        assert all(
            error_of(answer) == (429, "TooManyRequests") and answer[1]["retry-after"] == "1"
            for answer in refused
        )
        with Client(url) as client:
            assert client.studies() == []  # repeated by the client


def test_streams_are_limited(store):
    with (
        serving(
            store, limits=ServiceLimits(streams=1, stream_seconds=0.5, poll_seconds=0.01)
        ) as url,
        Client(url) as client,
    ):
        study = client.study("one stream", selector="uniform", arms=ARMS)
        study.ask()
        followed = study.follow()
        assert next(followed).seq == 1
        path = path_of("one stream", "/events")
        assert error_of(send(url, "GET", path)) == (429, "TooManyRequests")
        assert error_of(send(url, "GET", path, headers={"last-event-id": "x"})) == (
            422,
            "InvalidValueError",
        )
        followed.close()
        wait_until(lambda: send(url, "GET", path)[0] == 200, "the end of the first stream")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff\xfe{}", 400),
        (b"[" * 100_000, 400),
        (b'{"value": ' + b"9" * 5000 + b"}", 400),
        (b"", 422),
        (b"[]", 422),
        (b"null", 422),
        (b'"\\ud800"', 422),
        (b'{"choice": 1, "value": NaN}', 422),
        (b'{"choice": 1, "value": 1e999}', 422),
        (b'{"choice": 1, "value": "1"}', 422),
        (b'{"choice": true, "value": 1}', 422),
        (b'{"choice": 1, "value": 1, "other": 2}', 422),
        (b'{"choice": 1, "value": 1, "key": "\\ud800"}', 422),
        (b'{"choice": 1, "value": 1, "key": "\\u0000"}', 422),
        (b'{"choice": 9007199254740993, "value": 1}', 422),
        (b'{"choice": 1, "value": 1, "log_probs": {"a": [1], "b": [1, 2]}}', 422),
    ],
)
def test_a_body_with_a_mistake_is_one_sentence(body, status, client, url):
    client.study("bodies", selector="uniform", arms=ARMS)
    answer = send(url, "POST", path_of("bodies", "/tell"), body)
    assert error_of(answer)[0] == status


def test_other_sites_cannot_use_a_service_without_tokens(url):
    host = urlsplit(url).netloc
    assert error_of(send(url, "GET", "/v1/studies", headers={"host": "evil.example"})) == (
        403,
        "Forbidden",
    )
    assert error_of(send(url, "POST", "/v1/studies", b"{}", {"origin": "http://evil.example"})) == (
        403,
        "Forbidden",
    )
    assert send(url, "GET", "/v1/studies", headers={"origin": f"http://{host}"})[0] == 200
    assert (
        error_of(send(url, "POST", "/v1/studies", b"{}", {"content-type": "text/plain"}))[0] == 422
    )


def test_clients_cannot_import_modules(url, client, store, tmp_path, monkeypatch):
    body = {"name": "imported", "selector": "somewhere:Selector", "arms": ARMS}
    assert error_of(send(url, "POST", "/v1/studies", body)) == (403, "TrustError")
    with pytest.raises(TrustError, match=r"would import .*imported modules can run any code"):
        client.study(
            "imported", selector="ssbas", arms=ARMS, options={"bandit": "somewhere:Bandit"}
        )
    (tmp_path / "trusted_selector.py").write_text(
        "from esbas import Uniform\n\n\nclass Mine(Uniform):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    esbas.open_study(store, "mine", selector="trusted_selector:Mine", arms=ARMS).close()
    with serving(store) as untrusted:
        assert error_of(send(untrusted, "GET", path_of("mine"))) == (403, "TrustError")
    with serving(store, trust=True) as trusted, Client(trusted) as other:
        assert other.existing_study("mine").ask().number == 1


def test_unknown_paths_and_methods_have_the_same_shape(url):
    assert error_of(send(url, "GET", "/v1/nothing")) == (404, "NotFound")
    assert error_of(send(url, "PUT", "/v1/studies")) == (405, "MethodNotAllowed")
    assert error_of(send(url, "GET", "/v1/studies/")) == (404, "NotFound")
    assert error_of(send(url, "GET", "/v1/studies/%00")) == (422, "InvalidValueError")
    assert error_of(send(url, "GET", "/v1/studies/%FF/arms")) == (404, "UnknownNameError")


def test_pages_load_nothing_from_elsewhere(url):
    for path, allowed in (("/", "'self'"), ("/docs", "'none'")):
        status, headers, body = send(url, "GET", path)
        assert status == 200
        assert f"default-src {allowed}" in headers["content-security-policy"]
        assert "script" not in headers["content-security-policy"]
        assert b"http" not in body.replace(b"</html>", b"")
    schema = json.loads(send(url, "GET", "/openapi.json")[2])
    assert schema["paths"]["/healthz"]["get"]["security"] == []
    asked = schema["paths"]["/v1/studies/{study}/ask"]["post"]
    assert asked["security"] == [{"token": []}]
    assert {"200", "401", "403", "404", "409", "413", "422", "429", "503"} <= set(
        asked["responses"]
    )
    assert schema["components"]["schemas"]["AskRequest"]["examples"]


def test_many_studies_are_opened_and_closed(store):
    limits = ServiceLimits(open_studies=2, studies=5)
    with serving(store, limits=limits) as url, Client(url) as client:
        studies = [client.study(f"study {n}", selector="uniform", arms=ARMS) for n in range(5)]
        for study in 2 * studies:
            study.ask()
        assert [each["last"] for each in client.studies()] == [2] * 5
        assert len(list(os.scandir("/proc/self/fd"))) < 200
        with pytest.raises(esbas.EsbasError, match="at most 5 studies"):
            client.study("one more", selector="uniform", arms=ARMS)
        client.study("study 0", selector="uniform", arms=ARMS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--host", "0.0.0.0"], "Other machines can reach '0.0.0.0', but there are no tokens"),
        (["--host", "::"], "Other machines can reach '::', but there are no tokens"),
        (["--token-file", "missing.toml"], "missing.toml"),
        (["--port", "99999"], "`port` must be between 0 and 65535, but got 99999"),
        (["--host", "127.0.0.1", "--port", "1", "--token-file", "."], "must be a plain file"),
        (["--rate", "0"], "`rate` must be greater than 0, but got 0"),
    ],
)
def test_mistakes_on_the_command_line_are_one_sentence(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "bot.db", *words]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert message in printed
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_taken_is_one_sentence(url, tmp_path, capsys):
    port = str(urlsplit(url).port)
    assert main(["serve", str(tmp_path / "bot.db"), "--port", port]) == 2
    assert "cannot be used" in capsys.readouterr().err
