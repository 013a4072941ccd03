// Threads that throw and write files, then a mistake that the argument names, for a sanitizer to find.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static void work(std::string name)
{
	for (int i = 0; i < 20; i++) {
		int fd = open(name.c_str(), O_CREAT | O_WRONLY, 0644), other = dup(fd);

		if (write(fd, "hello", 5) != 5 || close(fd) || close(other))
			abort();
		try {
			throw std::runtime_error("thrown");
		} catch (std::exception &) {
		}
		std::ofstream(name) << "text";
		FILE *stream = fopen(name.c_str(), "a");
		fputs("more", stream);
		fclose(stream);
	}
}

int main(int argc, char **argv)
{
	std::string mistake = argc > 1 ? argv[1] : "";
	std::vector<std::thread> threads;
	static int shared;

	for (int i = 0; i < 3; i++)
		threads.emplace_back(work, "file" + std::to_string(i));
	for (std::thread &thread : threads)
		thread.join();
	if (mistake == "child" && system("touch child"))
		abort();
	if (mistake == "freed") {
		volatile char *gone = static_cast<char *>(malloc(8));

		free(const_cast<char *>(gone));
		gone[1] = 2;
	}
	if (mistake == "leak") {
		void *volatile lost = malloc(77);

		lost = nullptr;
	}
	if (mistake == "race") {
		std::thread one([] { shared++; }), two([] { shared++; });

		one.join();
		two.join();
	}
	puts("done");
	return 3;
}
