# Prints the effective view that a pod would have with the snippet of the standard input.
# Nothing is written. The arguments are merge-config, the folder of the parts, and the name
# of the part that the snippet replaces.
import importlib.machinery
import importlib.util
import os
import sys

script, folder, custom = sys.argv[1:]
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("merge_config", script)
merge = importlib.util.module_from_spec(importlib.util.spec_from_loader("merge_config", loader))
loader.exec_module(merge)
sys.excepthook = lambda kind, error, _: print(
    error if kind is merge.Refused else kind.__name__, file=sys.stderr)  # without any value

snippet = sys.stdin.buffer.read().decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
names = sorted({n for n in os.listdir(folder) if n.endswith(".conf")} | {custom})
parts = [merge.parse(n, snippet if n == custom else merge.read(os.path.join(folder, n)))
         for n in names]
options = merge.parse_options(merge.read(os.path.join(os.path.dirname(script), "options.txt")))
project = os.path.basename(folder.rstrip("/")).removesuffix(".conf.d")
sys.stdout.buffer.write(merge.render(project, merge.resolve(parts, options)).encode("utf-8"))
