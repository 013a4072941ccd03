"""What the emulated MDS accepts, refuses and instantiates: each row of the observed tables."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tarazu.sim.testbed import Testbed


def test_new_file_gets_the_default_layout(bed, agent):
    assert agent("open('a', 'w').close(); result = [len(o) for o in osts('a')]") == [1]
    layout = bed.layout("a").layout
    assert layout.components[0].stripe_size_bytes == 4 << 20
    assert not layout.composite


@pytest.mark.parametrize("set_it", ["set_ioctl", "set_layout"])
def test_explicit_list_on_the_descriptor_the_application_gets(bed, agent, set_it):
    result = agent(f"""
        fd = delayed('a', os.O_WRONLY | os.O_EXCL)
        answers = [attempt({set_it}, fd, plain(3, osts=[6, 0, 3])), os.write(fd, b'x' * 10)]
        answers.append(fcntl.fcntl(fd, fcntl.F_GETFL) & DELAY)
        os.close(fd)
        result = answers + osts('a')
    """)
    assert result == [0, 10, 0, [6, 0, 3]]
    assert bed.layout("a").osts == ((6, 0, 3),)


def test_layout_written_is_the_layout_read(bed, agent):
    result = agent("""
        fd = create('a', composite((0, MIB, [7]), (MIB, 64 * MIB, [1, 2, 3]), (64 * MIB, EOF, 4, 5)))
        os.ftruncate(fd, 65 * MIB)
        blob = os.getxattr('a', 'lustre.lov')
        room = bytearray(65536); room[0:8] = blob[0:4] + (65536).to_bytes(4, 'little')
        fcntl.ioctl(fd, GETSTRIPE, room)
        result = [osts('a'), bytes(room[:len(blob)]) == blob, os.getxattr('a', 'trusted.lov') == blob]
        os.close(fd)
    """)
    assert result == [[[7], [1, 2, 3], [5, 6, 0, 4]], True, True]  # the hint avoids what other components use


def test_without_layout_a_write_of_the_same_client_fails_until_there_is_one(bed, agent):
    """Another open there shares the client's handle: nobody asks the MDS, which would make the default layout."""
    result = agent("""
        fd = delayed('a')
        answers = [attempt(os.write, fd, b'x'), attempt(os.getxattr, 'a', 'lustre.lov')]
        again = os.open('a', os.O_WRONLY)
        answers += [attempt(os.write, again, b'x'), set_ioctl(fd, plain(osts=[4]))]
        answers += [os.write(again, b'yy'), os.write(fd, b'x'), osts('a')]
        result = answers
    """)
    assert result == ["EBADF", "ENODATA", "EBADF", 0, 2, 1, [[4]]]


def test_who_opens_a_file_without_layout_on_another_client_gets_the_default_one(bed, agent):
    result = agent("""
        fd = delayed('a')
        os.environ["TESTBED_CLIENT"] = "client2"
        again = os.open('a', os.O_WRONLY)
        result = [os.write(again, b'yy'), attempt(set_ioctl, fd, plain(osts=[4])), os.write(fd, b'x'), len(osts('a'))]
    """)
    assert result == [2, "EEXIST", 1, 1]


def test_after_a_refused_layout_an_open_of_the_same_client_asks_the_mds_again(bed, agent):
    result = agent("""
        fd = delayed('a')
        answers = [attempt(set_ioctl, fd, plain(osts=[3, 3])), attempt(os.write, fd, b'x')]
        again = os.open('a', os.O_WRONLY)
        answers += [os.write(again, b'yy'), os.write(fd, b'x'), len(osts('a'))]
        result = answers
    """)
    assert result == ["EINVAL", "EBADF", 2, 1, 1]


def test_an_existing_layout_stays(bed, agent):
    result = agent("""
        os.close(create('a', plain(osts=[4])))
        fd = delayed('a')
        result = [attempt(set_ioctl, fd, plain(osts=[5])), attempt(set_layout, fd, plain(osts=[5])), os.write(fd, b'x')]
        result += osts('a')
    """)
    assert result == ["EEXIST", 0, 1, [4]]


@pytest.mark.parametrize(
    ("blob", "refusal"),
    [
        ("plain(osts=[3, 3])", "EINVAL"),
        ("plain(osts=[99, 3])", "EINVAL"),
        ("plain(hint=99)", "EINVAL"),
        ("plain(size=100000)", "EINVAL"),
        ("plain(size=65536)", 0),
        ("plain(osts=[3, 3], pattern='overstriped')", 0),
        ("composite((0, 1000, 1), (1000, EOF, 1))", "EINVAL"),
        ("composite((0, MIB, 1), (2 * MIB, EOF, 1))", "EINVAL"),
        ("composite((MIB, EOF, 1))", "EINVAL"),
        ("b'nonsense'", "EINVAL"),
    ],
)
def test_malformed_layouts_are_refused_and_a_correct_one_still_works(bed, agent, blob, refusal):
    result = agent(f"""
        fd = delayed('a')
        result = [attempt(set_ioctl, fd, {blob}.ljust(32, b'.'))]
        if result[0]:
            result += [attempt(os.write, fd, b'x'), set_ioctl(fd, plain(osts=[2])), os.write(fd, b'x')]
    """)
    assert result == ([refusal] if refusal == 0 else [refusal, "EBADF", 0, 1])


def test_an_index_inside_a_list_that_does_not_exist_is_recorded_as_a_crash(new_bed):
    bed = new_bed(osss=2, osts_per_oss=2)
    script = "import os,sys\nfrom tarazu import Component, EOF, Layout\nfrom tarazu.sim.testbed import lov\n"
    script += "fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR | os.O_NOCTTY | 0o20000)\n"
    script += (
        "try: os.setxattr(fd, 'lustre.lov', lov.encode(Layout((Component(0, EOF, 65536, 2),)), ((3, 99),)))\n"
    )
    script += "except OSError as e: print(e.errno)"
    done = bed.exec(0, [sys.executable, "-c", script, str(bed.mount / "a")], capture_output=True, text=True)
    assert done.stdout.strip() == "5"
    assert "99" in (bed.crashed() or "")


STATES = ["no_create", "inactive", "full", "readonly", "degraded"]
REFUSAL = {
    "no_create": "ENOBUFS",
    "inactive": "EREMOTEIO",
    "full": "ENOSPC",
    "readonly": "EROFS",
    "degraded": 0,
}


def _change(bed: Testbed, index: int, state: str) -> None:
    bed.set_ost(index, **({"active": False} if state == "inactive" else {state: True}))


@pytest.mark.parametrize("state", STATES)
def test_plain_create_with_a_list(bed, agent, state):
    _change(bed, 6, state)
    assert agent("result = attempt(set_layout, delayed('a'), plain(osts=[5, 6]))") == REFUSAL[state]


@pytest.mark.parametrize("state", STATES)
def test_late_component_with_a_list(bed, agent, state):
    agent("create('a', three())")
    shown = bed.layout("a")
    assert (shown.osts, shown.instantiated) == (((0,), (), ()), (True, False, False))
    assert shown.hints == (None, None, None)
    _change(bed, 6, state)
    result = agent("fd = os.open('a', os.O_WRONLY); result = attempt(os.pwrite, fd, b'x', 2 * MIB)")
    if state == "degraded":
        assert result == 1
        assert bed.layout("a").osts == ((0,), (5, 6), ())
    else:
        assert result == REFUSAL[state]
        assert bed.layout("a").osts == ((0,), (), ())


@pytest.mark.parametrize("state", ["no_create", "inactive", "full"])
def test_late_component_with_a_start_hint_falls_back(bed, agent, state):
    agent("create('a', composite((0, MIB, [0]), (MIB, 8 * MIB, 2, 5), (8 * MIB, EOF, 1)))")
    assert bed.layout("a").hints[1] == 5
    _change(bed, 6, state)
    assert agent("fd = os.open('a', os.O_WRONLY); result = os.pwrite(fd, b'x', 2 * MIB)") == 1
    assert bed.layout("a").osts[1] == (5, 7)


def test_instantiation_at_creation_by_truncating_up_and_back(bed, agent):
    result = agent("""
        fd = create('a', three())
        os.ftruncate(fd, 8 * MIB + 1)
        os.ftruncate(fd, 0)
        result = [osts('a'), os.fstat(fd).st_size, os.fstat(fd).st_blocks]
    """)
    assert result == [[[0], [5, 6], [1, 2, 3, 4]], 0, 0]


def test_a_refusal_at_creation_leaves_the_tail_which_can_be_replaced_by_hints(bed, agent):
    bed.set_ost(2, no_create=True)
    result = agent("""
        fd = create('a', three())
        os.ftruncate(fd, 9 * MIB)
        os.ftruncate(fd, 0)
        answers = [osts('a'), attempt(os.pwrite, fd, b'x', 9 * MIB)]
        entries = [(i, (8 * MIB if i == 3 else MIB)) for i in (3,)]
        def remove(number):
            blob = bytearray(composite((0, EOF, 1)))
            blob[32:36] = number.to_bytes(4, 'little')
            return attempt(set_layout, fd, bytes(blob), 'lustre.lov.del')
        answers += [remove(2), remove(3), remove(9)]
        answers.append(attempt(set_layout, fd, composite((4 * MIB, EOF, 4, 1)), 'lustre.lov.add'))
        answers.append(attempt(set_layout, fd, composite((8 * MIB, EOF, 4, 1)), 'lustre.lov.add'))
        result = answers + [attempt(os.pwrite, fd, b'x', 9 * MIB), osts('a')]
    """)
    before, refused, hole, removed, unknown, gap, added, written, after = result
    assert before == [[0], [5, 6], []]
    assert refused == "ENOBUFS"
    assert (hole, removed, unknown, gap, added, written) == ("EINVAL", 0, "EINVAL", "EINVAL", 0, 1)
    assert after[:2] == [[0], [5, 6]]
    assert after[2][0] == 1 and len(after[2]) == 4 and 2 not in after[2]


def test_duplicate_in_a_late_list_fails_the_write(bed, agent):
    assert agent("result = attempt(os.pwrite, create('a', three(middle=[5, 5])), b'x', 2 * MIB)") == "EINVAL"


def test_only_what_a_write_reaches_is_instantiated_and_what_lies_before(bed, agent):
    assert agent("""
        fd = create('a', three())
        os.pwrite(fd, b'x' * MIB, 0)
        first = osts('a')
        os.pwrite(fd, b'x', 100 * MIB)
        result = [first, osts('a')]
    """) == [[[0], [], []], [[0], [5, 6], [1, 2, 3, 4]]]


def test_a_write_past_a_last_component_that_ends_before_eof_fails(bed, agent):
    result = agent("""
        fd = create('a', composite((0, MIB, 1), (MIB, 4 * MIB, 1)))
        result = [os.pwrite(fd, b'x', 4 * MIB - 1), isinstance(attempt(os.pwrite, fd, b'x', 4 * MIB), str)]
        result.append(isinstance(attempt(os.ftruncate, fd, 8 * MIB), str))
    """)
    assert result == [1, True, True]


def test_tmpfile_is_not_supported(bed, agent):
    assert agent("result = attempt(os.open, '.', os.O_TMPFILE | os.O_RDWR)") == "ENOTSUP"


def test_append_trunc_and_sync_keep_an_explicit_list(bed, agent):
    assert agent("""
        fd = delayed('a', os.O_WRONLY | os.O_APPEND | os.O_TRUNC | os.O_SYNC)
        set_layout(fd, plain(osts=[4, 1]))
        os.write(fd, b'ab'); os.write(fd, b'cd')
        result = [open('a').read(), osts('a')]
    """) == ["abcd", [[4, 1]]]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become an ordinary user")
def test_read_only_mode_as_an_ordinary_user(bed, agent):
    script = (
        "import os,sys,errno\nfrom tarazu import Component, EOF, Layout\nfrom tarazu.sim.testbed import lov\n"
        "os.umask(0); os.setgroups([]); os.setgid(65534); os.setuid(65534); os.chdir(sys.argv[1])\n"
        "def attempt(f, *a):\n"
        "    try: f(*a); return 'fine'\n"
        "    except OSError as e: return errno.errorcode[e.errno]\n"
        "fd = os.open('u', os.O_CREAT | os.O_RDWR | os.O_NOCTTY | 0o20000, 0o444)\n"
        "blob = lov.encode(Layout((Component(0, EOF, 65536, 1),)), ((3,),))\n"
        "print(attempt(os.setxattr, fd, 'lustre.lov', blob), attempt(os.write, fd, b'x'), attempt(os.open, 'u', 1))"
    )
    (bed.mount / "free").mkdir()
    (bed.mount / "free").chmod(0o777)
    bed.mount.chmod(0o755)
    done = bed.exec(
        0, [sys.executable, "-c", script, str(bed.mount / "free")], capture_output=True, text=True
    )
    assert done.stdout.split() == ["EACCES", "EBADF", "EACCES"], done.stderr
    assert agent("result = attempt(set_layout, delayed('r', mode=0o444), plain(osts=[3]))") == 0  # root may


def test_pools(bed, agent):
    result = agent("""
        os.mkdir('d')
        os.setxattr('d', 'lustre.lov', plain(2, pool='flash'))
        def pool(path): return lov.decode(os.getxattr(path, 'lustre.lov')).layout.components[0].pool
        open('d/default', 'w').close()
        os.mkdir('d/below'); open('d/below/default', 'w').close()
        os.close(create('d/inside', plain(osts=[3, 1])))
        os.close(create('d/outside', plain(osts=[6, 7])))
        os.close(create('d/half', plain(osts=[1, 7])))
        result = [[pool(p), osts(p)[0]] for p in ('d/default', 'd/below/default', 'd/inside', 'd/outside', 'd/half')]
    """)
    assert [pool for pool, _ in result] == ["flash", "flash", "flash", "", ""]
    assert all(set(osts) <= {1, 2, 3} and len(osts) == 2 for _, osts in result[:3])
    assert [osts for _, osts in result[2:]] == [[3, 1], [6, 7], [1, 7]]


def test_directory_defaults(bed, agent):
    result = agent("""
        os.mkdir('d')
        answers = [attempt(os.getxattr, 'd', 'lustre.lov')]
        os.setxattr('d', 'lustre.lov', composite((0, MIB, 1), (MIB, EOF, 4)))
        shown = lov.decode(os.getxattr('d', 'lustre.lov'), file=False)
        answers.append([c.stripe_count for c in shown.layout.components])
        fd = os.open('d/a', os.O_CREAT | os.O_WRONLY)
        os.write(fd, b'x' * 2 * MIB)
        answers.append([len(o) for o in osts('d/a')])
        os.removexattr('d', 'lustre.lov')
        answers.append(attempt(os.removexattr, 'd', 'lustre.lov'))
        open('d/b', 'w').close()
        result = answers + [[len(o) for o in osts('d/b')], attempt(os.removexattr, 'd/b', 'lustre.lov')]
    """)
    assert result == ["ENODATA", [1, 4], [1, 4], "ENODATA", [1], "EPERM"]


def test_component_on_the_mdt_has_no_objects(bed, agent):
    result = agent("""
        blob = lov.encode(Layout((
            Component(0, MIB, MIB, 0, 'mdt'), Component(MIB, EOF, MIB, 2)), True), ((), (3, 5)))
        fd = create('a', blob)
        os.write(fd, b'x' * MIB)
        small = osts('a')
        os.write(fd, b'x' * 2 * MIB)
        result = [small, osts('a')]
    """)
    assert result == [[[], []], [[], [3, 5]]]
    assert bed.usage().ost_bytes == [0, 0, 0, 1 << 20, 0, 1 << 20, 0, 0]


def test_overstriping_is_used_where_it_is_needed(bed, agent):
    result = agent("""
        os.close(create('few', plain(4, pattern='overstriped')))
        os.close(create('many', plain(20, pattern='overstriped')))
        def pattern(path): return lov.decode(os.getxattr(path, 'lustre.lov')).layout.components[0].pattern
        result = [pattern('few'), pattern('many'), osts('many')[0]]
    """)
    assert result[:2] == ["raid0", "overstriped"]
    counts = [result[2].count(i) for i in range(8)]
    assert len(result[2]) == 20 and set(counts) == {2, 3}


def test_self_extending_component_takes_what_it_needs(bed, agent):
    result = agent("""
        blob = lov.encode(Layout((
            Component(0, 64 * MIB, MIB, 1), Component(64 * MIB, EOF, 0, 0, extension_bytes=128 * MIB)), True))
        fd = create('a', blob)
        os.pwrite(fd, b'x', 100 * MIB)
        result = [[c.start_bytes // MIB, c.end_bytes // MIB] for c in lov.decode(os.getxattr('a', 'lustre.lov')).layout]
    """)
    assert result[0] == [0, 192] and result[1][0] == 192


def test_elsewhere_the_flag_does_no_harm_and_the_attribute_is_not_supported(bed, agent, tmp_path):
    result = agent(f"""
        fd = delayed({str(tmp_path / "f")!r})
        result = [attempt(set_layout, fd, plain(osts=[1])), attempt(set_ioctl, fd, plain(osts=[1])), os.write(fd, b'x')]
    """)
    assert result == ["ENOTSUP", "ENOTTY", 1]


def test_a_reused_inode_number_does_not_inherit_a_layout(bed, agent):
    result = agent("""
        seen = []
        for i in range(20):
            fd = create('a', plain(osts=[i % 8]))
            os.close(fd)
            os.unlink('a')
            seen.append(attempt(os.getxattr, 'a', 'lustre.lov'))
            fd = delayed('b'); seen.append(attempt(os.getxattr, 'b', 'lustre.lov')); os.close(fd); os.unlink('b')
        result = sorted(set(seen))
    """)
    assert result == ["ENODATA", "ENOENT"]


def test_unlinked_but_open_and_renamed_files_keep_their_layout(bed, agent):
    assert agent("""
        fd = create('a', three())
        os.rename('a', 'b')
        moved = osts('b')
        os.unlink('b')
        result = [moved, os.pwrite(fd, b'x', 9 * MIB)]
    """) == [[[0], [], []], 1]


def test_full_file_system_refuses_creation_and_leaves_nothing(bed, agent):
    for index in range(8):
        bed.set_ost(index, full=True)
    refused = agent("result = [attempt(os.open, 'a', os.O_CREAT | os.O_WRONLY), os.path.exists('a')]")
    assert refused == ["ENOSPC", False]
    done = bed.exec(0, ["awk", 'BEGIN {print > "b"}'], cwd=bed.mount, capture_output=True)  # by fopen
    assert done.returncode == 2


def test_ordinary_tools_see_no_layout_attribute_as_a_failure(bed):
    done = subprocess.run(["cp", "-a", str(bed.mount), str(bed.directory / "copy")], check=False)
    assert done.returncode == 0
