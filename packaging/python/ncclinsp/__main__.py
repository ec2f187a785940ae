# SPDX-License-Identifier: Apache-2.0
"""python -m ncclinsp: the command ncclinsp."""
from ncclinsp import main

main()
