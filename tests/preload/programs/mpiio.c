/* Every rank writes its block of one shared file and a file of its own through MPI-IO. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	char block[4096] = { 0 }, name[64];
	MPI_File f;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_File_open(MPI_COMM_WORLD, "shared", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
	MPI_File_write_at(f, (MPI_Offset)rank * 4096, block, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
	MPI_File_close(&f);
	snprintf(name, sizeof name, "own.%08d", rank);
	MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f);
	MPI_File_write(f, block, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
	MPI_File_close(&f);
	MPI_Finalize();
	return 0;
}
