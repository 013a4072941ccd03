/*
 * A file system that fails as names ask it to: everything lies in a directory beside it, and below a directory called
 * OPERATION=ERRNO each call of that operation fails so, with :N the N-th of a file only.
 *
 *	faulty BACKING MOUNT [libfuse's options]
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static char backing[PATH_MAX / 2];
static __thread char place[2][PATH_MAX];

static const char *real(const char *path, int which)
{
	snprintf(place[which], sizeof place[which], "%s%s", backing, path);
	return place[which];
}

/* The errno that the path asks for in this operation; its files count their own calls, in an attribute. */
static int fault(const char *path, const char *operation)
{
	size_t length = strlen(operation);
	const char *at = strstr(path, operation);
	unsigned long nth, seen = 0;
	char *end;
	int error;

	if (!at || at[-1] != '/' || at[length] != '=')
		return 0;
	error = (int)strtol(at + length + 1, &end, 10);
	if (*end != ':')
		return strchr(end, '/') ? -error : 0; /* not the directory itself */
	nth = strtoul(end + 1, NULL, 10);
	getxattr(real(path, 1), "user.seen", &seen, sizeof seen);
	seen++;
	setxattr(real(path, 1), "user.seen", &seen, sizeof seen, 0);
	return seen == nth ? -error : 0;
}

/* An open file: also one whose name is gone has the faults of the name by which it was opened. */
struct handle {
	int fd;
	char path[];
};

static struct handle *of(const struct fuse_file_info *file)
{
	return (struct handle *)(uintptr_t)file->fh;
}

#define FAIL(path, operation)                          \
	do {                                           \
		int error_ = fault(path, operation);   \
		if (error_)                            \
			return error_;                 \
	} while (0)
#define RESULT(call) ((call) < 0 ? -errno : 0)

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *file)
{
	if (file)
		FAIL(of(file)->path, "getattr");
	return file ? RESULT(fstat(of(file)->fd, st)) : RESULT(lstat(real(path, 0), st));
}

static int make_directory(const char *path, mode_t mode)
{
	FAIL(path, "mkdir");
	return RESULT(mkdir(real(path, 0), mode));
}

static int remove_file(const char *path)
{
	FAIL(path, "unlink");
	return RESULT(unlink(real(path, 0)));
}

static int remove_directory(const char *path)
{
	return RESULT(rmdir(real(path, 0)));
}

static int link_file(const char *from, const char *to)
{
	FAIL(to, "link");
	return RESULT(link(real(from, 0), real(to, 1)));
}

static int rename_file(const char *from, const char *to, unsigned flags)
{
	return flags ? -EINVAL : RESULT(rename(real(from, 0), real(to, 1)));
}

static int change_mode(const char *path, mode_t mode, struct fuse_file_info *file)
{
	(void)file;
	return RESULT(chmod(real(path, 0), mode));
}

static int change_owner(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *file)
{
	(void)file;
	return RESULT(lchown(real(path, 0), uid, gid));
}

static int truncate_file(const char *path, off_t size, struct fuse_file_info *file)
{
	FAIL(file ? of(file)->path : path, "truncate");
	return file ? RESULT(ftruncate(of(file)->fd, size)) : RESULT(truncate(real(path, 0), size));
}

static int opened(int fd, const char *path, struct fuse_file_info *file)
{
	size_t size = strlen(path) + 1;
	struct handle *handle;

	if (fd < 0)
		return -errno;
	handle = malloc(sizeof *handle + size);
	if (!handle)
		return -ENOMEM;
	handle->fd = fd;
	memcpy(handle->path, path, size);
	file->fh = (uintptr_t)handle;
	return 0;
}

static int open_file(const char *path, struct fuse_file_info *file)
{
	FAIL(path, "open");
	return opened(open(real(path, 0), file->flags & ~(O_APPEND | O_NOCTTY | O_ASYNC)), path, file);
}

static int create_file(const char *path, mode_t mode, struct fuse_file_info *file)
{
	FAIL(path, "create");
	return opened(open(real(path, 0), file->flags & ~(O_APPEND | O_NOCTTY | O_ASYNC), mode), path, file);
}

static int read_file(const char *path, char *data, size_t size, off_t offset, struct fuse_file_info *file)
{
	ssize_t n;

	(void)path;
	FAIL(of(file)->path, "read");
	n = pread(of(file)->fd, data, size, offset);
	return n < 0 ? -errno : (int)n;
}

static int write_file(const char *path, const char *data, size_t size, off_t offset, struct fuse_file_info *file)
{
	ssize_t n;

	(void)path;
	FAIL(of(file)->path, "write");
	n = pwrite(of(file)->fd, data, size, offset);
	return n < 0 ? -errno : (int)n;
}

static int flush_file(const char *path, struct fuse_file_info *file)
{
	(void)path;
	return fault(of(file)->path, "flush");
}

static int release_file(const char *path, struct fuse_file_info *file)
{
	(void)path;
	close(of(file)->fd);
	free(of(file));
	return 0;
}

static int sync_file(const char *path, int data, struct fuse_file_info *file)
{
	(void)path;
	(void)data;
	return fault(of(file)->path, "fsync");
}

static int allocate_file(const char *path, int mode, off_t offset, off_t length, struct fuse_file_info *file)
{
	(void)path;
	FAIL(of(file)->path, "fallocate");
	return RESULT(fallocate(of(file)->fd, mode, offset, length));
}

static int read_directory(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
			  struct fuse_file_info *file, enum fuse_readdir_flags flags)
{
	DIR *directory = opendir(real(path, 0));
	struct dirent *entry;

	(void)offset;
	(void)file;
	(void)flags;
	if (!directory)
		return -errno;
	while ((entry = readdir(directory)))
		fill(buffer, entry->d_name, NULL, 0, 0);
	closedir(directory);
	return 0;
}

static void *begin(struct fuse_conn_info *connection, struct fuse_config *config)
{
	(void)connection;
	config->use_ino = 1;
	config->nullpath_ok = 0;
	config->hard_remove = 1;
	/* What the kernel remembers of a file would hide what is asked of us. */
	config->attr_timeout = config->negative_timeout = 0;
	config->entry_timeout = 60;
	umask(0);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct fuse_operations operations = {
		.init = begin,
		.getattr = get_attributes,
		.mkdir = make_directory,
		.unlink = remove_file,
		.rmdir = remove_directory,
		.link = link_file,
		.rename = rename_file,
		.chmod = change_mode,
		.chown = change_owner,
		.truncate = truncate_file,
		.open = open_file,
		.create = create_file,
		.read = read_file,
		.write = write_file,
		.flush = flush_file,
		.release = release_file,
		.fsync = sync_file,
		.fallocate = allocate_file,
		.readdir = read_directory,
	};

	if (argc < 3 || !realpath(argv[1], backing))
		return 2;
	argv[1] = argv[0];
	return fuse_main(argc - 1, argv + 1, &operations, NULL);
}
