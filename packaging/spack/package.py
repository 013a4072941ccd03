"""The recipe for Spack 1.0 and later."""

# Put this directory's file into a repository of the site's own,
#
#     spack repo create ~/tarazu-repo tarazu-repo && mkdir ~/tarazu-repo/packages/tarazu
#     cp package.py ~/tarazu-repo/packages/tarazu/ && spack repo add ~/tarazu-repo
#     spack install tarazu +mds +client
#
# and say with `git` where the site keeps the sources. Units and the user tarazu are an administrator's matter:
# share/tarazu/systemd of the installation has them.

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class Tarazu(PythonPackage):
    """Balances I/O on Lustre, from the application's open() to the disk."""

    homepage = "https://example.com/tarazu"
    git = "https://example.com/tarazu.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("mds", default=False, description="allocation of OSTs (mdsd's node)")
    variant("client", default=True, description="prediction and `tarazu run` (launch nodes)")
    variant("mysql", default=False, description="interaction database on MySQL or MariaDB")
    variant("metrics", default=False, description="metrics for Prometheus")
    variant("page", default=False, description="the status page (one node, such as the MDS)")
    variant("bursts", default=False, description="traffic of compute nodes (one node, such as Slurm's)")
    variant("sim", default=False, description="simulator and readers of Darshan logs")

    depends_on("c", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-scikit-build-core@0.10:", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("ninja", type="build")

    depends_on("py-msgspec@0.18:", type=("build", "run"))
    depends_on("py-psutil@5.9:", type=("build", "run"))
    depends_on("py-pyzmq@25:", type=("build", "run"))

    with when("+mds"):
        depends_on("py-networkx@3.1:", type=("build", "run"))
        depends_on("py-numpy@1.25:", type=("build", "run"))
    with when("+client"):
        depends_on("py-numpy@1.25:", type=("build", "run"))
        depends_on("py-pyelftools@0.29:", type=("build", "run"))
        depends_on("py-statsmodels@0.14:", type=("build", "run"))
    with when("+mysql"):
        depends_on("py-pymysql@1.1:", type=("build", "run"))
    with when("+metrics"):
        depends_on("py-prometheus-client@0.17:", type=("build", "run"))
    with when("+page"):
        depends_on("py-jinja2@3.1:", type=("build", "run"))
    with when("+bursts"):
        depends_on("py-numpy@1.25:", type=("build", "run"))
        depends_on("py-pyarrow@15:", type=("build", "run"))
    with when("+sim"):
        depends_on("py-matplotlib@3.7:", type=("build", "run"))
        depends_on("py-networkx@3.1:", type=("build", "run"))
        depends_on("py-or-tools@9.8:", type=("build", "run"))
        depends_on("py-numpy@1.25:", type=("build", "run"))
        depends_on("py-scipy@1.10:", type=("build", "run"))
        depends_on("py-simpy@4.1:", type=("build", "run"))

    import_modules = ["tarazu", "tarazu.daemons", "tarazu.sim"]

    @run_after("install")
    def install_system_files(self):
        """Units, sysusers and tmpfiles, man pages and completion, where an administrator looks for them."""
        source = join_path(self.stage.source_path, "tarazu", "daemons", "systemd")
        install_tree(source, join_path(self.prefix.share, "tarazu", "systemd"))
        for unit in find(join_path(self.stage.source_path, "tarazu", "parts"), "*.service"):
            install(unit, join_path(self.prefix.share, "tarazu", "systemd"))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_version(self):
        Executable(join_path(self.prefix.bin, "tarazu"))("--version")
