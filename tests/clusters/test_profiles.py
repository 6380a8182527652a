"""Profiles: what is shipped, inheritance, users' own, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.clusters.load import SHIPPED, load_profile, profile_folders, profile_names
from runyard.clusters.place import Place, recognise
from runyard.clusters.scratch import scratch_folder
from runyard.errors import ConfigError, NotFoundError

SHIPPED_NAMES = profile_names([SHIPPED])


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_every_shipped_profile_is_sound_and_says_when_it_was_checked(name: str) -> None:
    profile = load_profile(name, folders=[SHIPPED])
    assert profile.name == name
    assert profile.identity.title
    assert profile.identity.checked
    assert profile.identity.sources
    assert profile.script.shell in ("bash", "zsh")


def test_the_clusters_that_are_promised_are_there() -> None:
    promised = {
        "generic", "alliance", "fir", "nibi", "narval", "rorqual", "trillium", "perlmutter",
        "claix-2023", "juwels-booster", "aws-parallelcluster", "plai",
    }  # fmt: skip
    assert promised <= set(SHIPPED_NAMES)


def test_narval_has_what_the_alliance_has_and_its_own() -> None:
    narval = load_profile("narval", folders=[SHIPPED])
    assert [Path(file).stem for file in narval.files] == ["generic", "alliance", "narval"]
    assert narval.gpus.form == "gpus_per_node"
    assert narval.gpus.types["a100"].memory_gb == 40
    assert narval.software.wheels == "site"
    assert narval.network.wandb == "offline"
    assert narval.limits.longest == 7 * 86400
    assert narval.submission.defaults == {"time": "1h", "nodes": "1", "gpus": "0", "cpus": "2"}


def test_gpu_memory_by_type_is_in_the_profile() -> None:
    fir = load_profile("fir", folders=[SHIPPED])
    assert fir.gpus.types["h100"].memory_gb == 80
    assert fir.gpus.slices["nvidia_h100_80gb_hbm3_1g.10gb"].of == "h100"


def test_a_group_inherits_a_cluster_and_a_user_the_group(tmp_path: Path) -> None:
    write(
        tmp_path,
        "lab",
        "inherits: cedar\n"
        "submission:\n"
        "  values: {account: [def-fwood, rrg-kevinlb]}\n"
        "  defaults: {account: rrg-kevinlb}\n",
    )
    write(tmp_path, "mine", "inherits: lab\nsubmission: {defaults: {time: 3h}}\n")
    mine = load_profile("mine", folders=[tmp_path, SHIPPED])
    assert mine.submission.defaults["account"] == "rrg-kevinlb"
    assert mine.submission.defaults["time"] == "3h"
    assert mine.submission.defaults["gpus"] == "1"
    assert mine.gpus.default_type == "v100l"


def test_a_key_left_empty_takes_away_what_was_inherited(tmp_path: Path) -> None:
    write(
        tmp_path,
        "mine",
        "inherits: plai\nsubmission: {ignored: {account: }}\nlimits: {array_throttle: }\n",
    )
    mine = load_profile("mine", folders=[tmp_path, SHIPPED])
    assert set(mine.submission.ignored) == {"gpu_type"}
    assert mine.limits.array_throttle is None


def test_a_users_file_stands_before_the_shipped_one_and_may_inherit_it(tmp_path: Path) -> None:
    write(tmp_path, "narval", "inherits: narval\nlimits: {longest: 1d}\n")
    narval = load_profile("narval", folders=[tmp_path, SHIPPED])
    assert narval.limits.longest == 86400
    assert narval.gpus.default_type == "a100"


def test_folders_are_asked_in_order() -> None:
    environ = {"RUNYARD_CLUSTERS": "/a:/b", "XDG_CONFIG_HOME": "/c"}
    assert profile_folders(environ) == (
        Path("/a"),
        Path("/b"),
        Path("/c/runyard/clusters"),
        SHIPPED,
    )


def test_each_mistake_is_told_with_file_and_line(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "mine",
        "limits:\n  longest: 60\n  arraysize: 5\ngpus:\n  form: gpus\n  types: {x: {memory: 3}}\n",
    )
    with pytest.raises(ConfigError) as caught:
        load_profile("mine", folders=[tmp_path, SHIPPED])
    told = caught.value.what
    assert "4 mistakes" in told
    assert f"{file}:2: longest is the number 60; a length of time says its unit" in told
    assert f'{file}:3: "arraysize" is not a key here; did you mean array_size?' in told
    assert f'{file}:5: form is the text "gpus"; it can be gpus_per_node, gres' in told
    assert f'{file}:6: types: x is a mapping; "memory" is not a key here' in told


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            "submission:\n  mandatory: {memory: a}\n  forbidden: {memory: b}\n"
            "memory: {form: none}\n",
            2,
            "memory is mandatory (a) and forbidden (b) at once",
        ),
        ("limits:\n  shortest: 2h\n  longest: 1h\n", 2, "the shortest job (2h) is longer"),
        ("limits:\n  by_qos:\n    q:\n      shortest: 2h\n      longest: 1h\n", 4, "longer"),
        ("gpus:\n  default_type: b\n  types: {a: {}}\n", 2, "b is none of its types"),
        ("gpus:\n  slices:\n    s: {of: z}\n", 3, "s is a slice of z"),
        ("gpus:\n  form: none\n  types: {a: {}}\n", 2, "no partition has them"),
        ("submission:\n  forbidden: {memory: x}\nmemory:\n  form: per_node\n", 4, "forbidden (x)"),
        (
            "submission:\n  values: {account: [a, b]}\n  defaults: {account: c}\n",
            3,
            "the default c of account is none of its values",
        ),
        ("submission:\n  values: {account: []}\n", 2, "no value at all"),
        ("network:\n  internet: proxy\n", 2, "no module sets it"),
        ("network:\n  ports: 40000-3\n", 2, "no range of ports"),
        ("script:\n  interpreter: /bin/csh\n", 2, "not for csh"),
        ("limits:\n  array_throttle: 5000\n", 2, "5000 array tasks at once"),
    ],
)
def test_a_profile_that_contradicts_itself_is_refused_with_the_place(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    file = write(tmp_path, "mine", text)
    with pytest.raises(ConfigError) as caught:
        load_profile("mine", folders=[tmp_path, SHIPPED])
    assert caught.value.what.startswith(f"{file}:{line}: ")
    assert words in caught.value.what
    assert caught.value.mend


def test_a_contradiction_with_an_inherited_file_names_the_users_own(tmp_path: Path) -> None:
    file = write(tmp_path, "mine", "inherits: fir\nlimits:\n  longest: 30m\n")
    with pytest.raises(ConfigError, match=r"the shortest job \(1h\) is longer") as caught:
        load_profile("mine", folders=[tmp_path, SHIPPED])
    assert caught.value.what.startswith(f"{file} with {SHIPPED / 'fir.yaml'}:")
    file.write_text("inherits: fir\nlimits:\n  longest: 2h\n")
    assert load_profile("mine", folders=[tmp_path, SHIPPED]).limits.longest == 7200


def test_profiles_that_inherit_each_other_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "a", "inherits: b\n")
    write(tmp_path, "b", "inherits: a\n")
    with pytest.raises(ConfigError, match=r"b\.yaml:1: b inherits a, which inherits it in turn"):
        load_profile("a", folders=[tmp_path, SHIPPED])


def test_a_parent_that_is_not_there_is_told_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "a", "# mine\ninherits: narvall\n")
    with pytest.raises(ConfigError, match=r"a\.yaml:2: there is no profile narvall") as caught:
        load_profile("a", folders=[tmp_path, SHIPPED])
    assert caught.value.mend == "did you mean narval?"


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(NotFoundError) as caught:
        load_profile("perlmuter", folders=[SHIPPED])
    assert caught.value.mend == "did you mean perlmutter?"


def test_what_is_no_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, "a", "limits:\n\tlongest: 1h\n")
    with pytest.raises(ConfigError, match=r"a\.yaml:2:1: a tab character"):
        load_profile("a", folders=[tmp_path, SHIPPED])
    write(tmp_path, "a", "- 1\n")
    with pytest.raises(ConfigError, match="is a list, and no profile"):
        load_profile("a", folders=[tmp_path, SHIPPED])


@pytest.mark.parametrize(
    ("place", "name", "because"),
    [
        (Place(("borg",)), "plai", "this host is borg"),
        (Place(("cedar5",)), "cedar", "this host is cedar5"),
        (Place(("gra-login1",)), "graham", "this host is gra-login1"),
        (Place(("narval1", "narval1.narval.calcul.quebec")), "narval", "this host is narval1"),
        (Place(("login01", "login01.perlmutter")), "perlmutter", "login01.perlmutter"),
        (Place(("login23-2",)), "claix-2023", "this host is login23-2"),
        (Place(("x",), "rorqual"), "rorqual", "Slurm calls the cluster rorqual"),
        (Place(("ip-10-0-0-1",), "parallelcluster"), "aws-parallelcluster", "parallelcluster"),
        (Place(("narval1",), "narval", {"RUNYARD_CLUSTER": "fir"}), "fir", "RUNYARD_CLUSTER"),
        (Place(("laptop",), "mine"), "generic", "no profile knows host laptop or cluster mine"),
        (Place(("firefly",)), "generic", "host firefly"),
    ],
)
def test_a_cluster_is_recognised_by_host_and_by_slurms_name(
    place: Place, name: str, because: str
) -> None:
    found = recognise(place, [SHIPPED])
    assert found.name == name
    assert because in found.because


def test_a_groups_profile_goes_before_the_one_that_it_inherits(tmp_path: Path) -> None:
    write(tmp_path, "lab", "inherits: narval\n")
    assert recognise(Place(("narval1",)), [tmp_path, SHIPPED]).name == "lab"


@pytest.mark.parametrize(
    "text",
    [
        "identity: {hosts: [lab*]}\n",
        "limits:\n  longest: 2d\nidentity:\n  hosts:\n  - lab*\n# the end\n",
        '{"identity": {"hosts": ["lab*"]}, "limits": {"longest": "2d"}}',
        "inherits: fir\n'identity': {hosts: [lab*]}\n",
        "limits: {longest: never}\nidentity: {hosts: [lab*]}\n",  # Told when it is used.
    ],
)
def test_a_cluster_is_recognised_however_its_profile_is_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text("gpus: {form: no such form}\n")
    assert recognise(Place(("lab3",)), [tmp_path, SHIPPED]).name == "lab"


def test_scratch_must_be_set_unless_the_profile_has_it(tmp_path: Path) -> None:
    narval = load_profile("narval", folders=[SHIPPED])
    with pytest.raises(ConfigError, match="SCRATCH is not set") as caught:
        scratch_folder(narval, {"HOME": "/home/me"})
    assert "export SCRATCH" in str(caught.value.mend)
    assert scratch_folder(narval, {"SCRATCH": "/scratch/me"}) == Path("/scratch/me")
    write(tmp_path, "mine", "inherits: plai\nstorage: {scratch: '/data/${USER}'}\n")
    mine = load_profile("mine", folders=[tmp_path, SHIPPED])
    assert scratch_folder(mine, {"USER": "me"}) == Path("/data/me")
    generic = load_profile("generic", folders=[SHIPPED])
    assert scratch_folder(generic, {"HOME": "/home/me"}) == Path("/home/me/scratch")
    with pytest.raises(ConfigError, match="no whole path"):
        scratch_folder(generic, {"SCRATCH": "here"})


def test_the_script_and_its_surroundings_are_the_profiles() -> None:
    claix = load_profile("claix-2023", folders=[SHIPPED])
    assert (claix.script.interpreter, claix.script.shell) == ("/usr/bin/zsh", "zsh")
    assert claix.accounting.usage_command == "r_wlm_usage -q"
    perlmutter = load_profile("perlmutter", folders=[SHIPPED])
    assert perlmutter.script.login_shell
    assert perlmutter.script.variables == {
        "HDF5_USE_FILE_LOCKING": "FALSE",
        "NCCL_NET_GDR_LEVEL": "PHB",
    }
    assert perlmutter.script.multi_node_variables == {"FI_MR_CACHE_MONITOR": "userfaultfd"}
    assert set(perlmutter.submission.mandatory) == {"account", "constraint", "qos"}
    plai = load_profile("plai", folders=[SHIPPED])
    assert plai.storage.local_made_by_us
    own = "/scratch-ssd/${USER}/${SLURM_JOB_ID}_${SLURM_ARRAY_TASK_ID:-0}"
    assert plai.storage.local == own
    cedar = load_profile("cedar", folders=[SHIPPED])
    assert cedar.script.modules == ("python/3.9", "cuda/11.4")
    jsc = load_profile("juwels-booster", folders=[SHIPPED])
    assert (jsc.network.address_suffix, jsc.network.interface) == ("i", "ib0")
    assert jsc.script.variables["SRUN_CPUS_PER_TASK"]
    aws = load_profile("aws-parallelcluster", folders=[SHIPPED])
    assert aws.elasticity.start_wait >= 300
