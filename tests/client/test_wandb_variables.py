"""What a wandb client needs to find our server."""

from __future__ import annotations

import pytest

from runyard.client.wandb_variables import wandb_variables

URL, KEY = "http://127.0.0.1:20001", "k" * 40


def test_the_client_is_told_where_and_with_which_key() -> None:
    wanted = wandb_variables(URL, KEY, {})
    assert wanted["WANDB_BASE_URL"] == URL
    assert wanted["WANDB_API_KEY"] == KEY
    assert wanted["WANDB_ERROR_REPORTING"] == "false"
    assert wanted["NO_PROXY"] == wanted["no_proxy"] == "127.0.0.1"


def test_what_the_user_tuned_stays() -> None:
    tuned = {"WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL": "30", "WANDB_ERROR_REPORTING": "true"}
    assert tuned.items() <= wandb_variables(URL, KEY, tuned).items()


@pytest.mark.parametrize(
    ("upper", "lower", "both"),
    [
        ("a", "a", "a,127.0.0.1"),
        ("", "local.net", "local.net,127.0.0.1"),
        ("a,b", "b,c", "a,b,c,127.0.0.1"),
        (" a , 127.0.0.1 ,,", "", "a,127.0.0.1"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("*", "", "*,127.0.0.1"),
    ],
)
def test_both_spellings_spare_what_either_spared_and_us(upper: str, lower: str, both: str) -> None:
    wanted = wandb_variables(URL, KEY, {"NO_PROXY": upper, "no_proxy": lower})
    assert (wanted["NO_PROXY"], wanted["no_proxy"]) == (both, both)


def test_an_address_of_version_six() -> None:
    assert wandb_variables("http://[::1]:20001", KEY, {})["NO_PROXY"] == "::1"
