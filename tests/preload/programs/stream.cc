// Output streams of C++.
#include <fstream>

int main()
{
	std::ofstream out("out.dat", std::ios::binary);
	for (int i = 0; i < 1000; i++)
		out << i << '\n';
	out.close();
	std::ofstream more("out.dat", std::ios::app);
	more << "end\n";
	return out.good() && more.good() ? 0 : 1;
}
