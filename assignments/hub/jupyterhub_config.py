"""JupyterHub for a class on one Linux machine: an account of the machine a student.

    cd /srv/hub && /srv/apex/.venv/bin/jupyterhub -f /srv/apex/hub/jupyterhub_config.py

README.md beside this file says what must be there before. The hub runs as root, since
it starts each student's server as that student; the servers and all that students run
have the rights of their accounts and no more.
"""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821  (JupyterHub defines it)

HERE = Path(__file__).resolve().parent
PROGRAMS = Path(sys.prefix, "bin")  # the environment whose jupyterhub reads this

# Where browsers come in. Leave it on loopback behind a web server that speaks HTTPS.
c.JupyterHub.bind_url = os.environ.get("APEX_HUB_URL", "http://127.0.0.1:8000")
# The proxy from npm if it is installed. The one of this environment, in Python, passes
# ten requests at a time and no answer before its end: enough to try a hub out.
PLACES = ("/usr/local/bin", "/usr/bin", PROGRAMS)
FOUND = [Path(place, "configurable-http-proxy") for place in PLACES]
c.ConfigurableHTTPProxy.command = [
    str(next(path for path in FOUND if path.exists())),
    "--proxy-timeout=600000",  # ms; by default the Python one gives up after 20 s
]

# Who may log in: whoever has an account on this machine, with its password.
c.JupyterHub.authenticator_class = "pam"
c.Authenticator.allow_all = True

# What each user gets: JupyterLab in the home folder, started as that user.
c.JupyterHub.spawner_class = "localprocess"
c.Spawner.cmd = [str(PROGRAMS / "jupyterhub-singleuser")]
c.Spawner.notebook_dir = "~"
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = 120  # seconds; on a busy machine Lab takes its time
c.Spawner.http_timeout = 120
c.Spawner.args = [
    # Kernels talk over files in the user's home, which strangers cannot open. Over TCP
    # every user of the machine could knock, and two kernels can take one port.
    "--KernelManager.transport=ipc",
    # No news, no updates; nbgrader's buttons for teachers are left out.
    f"--LabApp.app_settings_dir={HERE / 'lab'}",
    "--LabApp.extension_manager=readonly",
]
c.Spawner.environment = {
    "PATH": f"{PROGRAMS}:/usr/local/bin:/usr/bin:/bin",
    "JUPYTER_PREFER_ENV_PATH": "1",  # this environment's kernel, not one at home
    "JUPYTER_CONFIG_PATH": str(HERE),  # nbgrader_config.py
    "PYTHONNOUSERSITE": "1",
    # One thread a kernel: a class shares the cores, and waiting threads slow all down.
    "OMP_NUM_THREADS": "1",
}
