"""Files without a layout, as a real client and MDS treat them: what opens, writes and later layouts get."""

from __future__ import annotations


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
