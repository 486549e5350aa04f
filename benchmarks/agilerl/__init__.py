"""AgileRL's evolutionary population on tasks of the control benchmark. It needs an environment of its own: `make agilerl`."""
