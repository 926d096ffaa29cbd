"""`SandboxConfig`: what may be asked for, and what is refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError
from graphwright.sandbox import SandboxConfig


def test_nothing_true_a_dict_and_a_config_are_taken() -> None:
    config = SandboxConfig(cpu=1)

    assert SandboxConfig.of(None) is None
    assert SandboxConfig.of(False) is None
    assert SandboxConfig.of(True) == SandboxConfig()
    assert SandboxConfig.of({"cpu": 1}) == config
    assert SandboxConfig.of(config) is config


def test_the_defaults_are_the_documented_ones() -> None:
    config = SandboxConfig()

    assert (config.image, config.cpu, config.memory_bytes, config.disk_bytes) == (
        "python:3.11-slim",
        2,
        4 << 30,
        1 << 30,
    )
    assert (config.pids, config.network, config.timeout, config.workdir) == (256, "none", 300, "/workspace")
    assert (config.ids, config.read_only_rootfs) == ((65534, 65534), True)


@pytest.mark.parametrize(
    ("value", "size"), [("1M", 1 << 20), ("1.5G", 3 << 29), ("512 MiB", 512 << 20), ("2kb", None), (1 << 20, 1 << 20)]
)
def test_sizes_are_numbers_or_words(value: Any, size: int | None) -> None:
    if size is None:
        with pytest.raises(ConfigurationError, match="at least 1M"):
            SandboxConfig(memory=value)
    else:
        assert SandboxConfig(memory=value).memory_bytes == size


@pytest.mark.parametrize("value", [3, "docker", ["docker"], object])
def test_what_is_no_config_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="give True, a dict"):
        SandboxConfig.of(value)


def test_an_unknown_key_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(ConfigurationError, match="no option 'netwrok'; there are backend, image"):
        SandboxConfig.of({"netwrok": "none"})


@pytest.mark.parametrize(
    "options",
    [
        {"backend": "chroot"},
        {"network": "host"},
        {"network": True},
        {"cpu": -1},
        {"cpu": float("nan")},
        {"cpu": True},
        {"pids": 0},
        {"max_output": 0},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"memory": "much"},
        {"disk": -5},
        {"user": "root"},
        {"user": "0:0"},
        {"user": "1000:0"},
        {"image": "--privileged"},
        {"read_only_rootfs": False},
        {"workdir": "workspace"},
        {"workdir": "/"},
        {"workdir": "/etc/x"},
        {"workdir": "/a/../etc"},
        {"workdir": "/a,readonly=false"},
        {"env": {"A=B": "x"}},
        {"env": {"A": 3}},
        {"mounts": {"/data": "relative"}},
        {"mounts": {"/proc": "/tmp"}},
        {"mounts": {"/workspace/data": "/srv"}},
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"sandbox: (the )?{next(iter(options)).rstrip('s')}"):
        SandboxConfig(**options)
