"""Compare merge-config with the real oslo.config, in one process.

Reads {registered, scripts, cases, first, snippets, literals, names} as JSON from
stdin and writes {failures, accepted, literals, secret} to stdout:

  registered  [{section, name, multi, cli, known, deprecated: [[section, name], ...]}]
  scripts     the directory with merge-config and its options.txt
  cases       [[text of 10-defaults.conf, 50-connections.conf, 90-custom.conf]]
  first       whether the first failure is enough
  snippets    [text], each accepted or not
  literals    {text, names}: a file and the options to read from its [DEFAULT]
  names       [option], of which those are secret that merge-config hides
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import logging
import os
import re
import shutil
import sys
import tempfile

from oslo_config import cfg

PARTS = ["10-defaults.conf", "50-connections.conf", "90-custom.conf"]
UNSET = object()


def load(path):
    loader = importlib.machinery.SourceFileLoader("merge_config", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("merge_config", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def group_name(section):
    return section if section == "DEFAULT" else section.lower()


def new_opt(section, o):
    kind = cfg.MultiStrOpt if o["multi"] else cfg.StrOpt
    deprecated = [cfg.DeprecatedOpt(name, group=group) for group, name in o["deprecated"]]
    return kind(o["name"], deprecated_opts=deprecated)


class Options(cfg.ConfigOpts):
    """Reads files even if an option of the command line refers to nothing."""

    def _validate_cli_options(self, namespace):
        pass


class Reader:
    """Reads files with the real oslo.config."""

    def __init__(self, registered):
        self.opts = {(o["section"], o["name"]): (new_opt(o["section"], o), o["cli"]) for o in registered}
        self.plain = {}
        self.merged, self.view = self.new_options(), self.new_options()

    def new_options(self):
        conf = Options()
        for (section, _), (opt, cli) in self.opts.items():
            group = None if section == "DEFAULT" else section
            (conf.register_cli_opt if cli else conf.register_opt)(opt, group=group)
        return conf

    @staticmethod
    def read(conf, *args):
        """Read files as a service does that is started with these arguments."""
        conf(list(args), project="x", default_config_files=[], default_config_dirs=[])

    def alone(self, path):
        """Read one file, apart from all others."""
        namespace = cfg._Namespace(self.merged)
        cfg.ConfigParser._parse_file(path, namespace)
        return namespace

    def found(self, namespace, key):
        """What stands in the files, before references are replaced."""
        opt = self.opts[key][0] if key in self.opts else self.unregistered(key[1])
        try:
            return opt._get_from_namespace(namespace, key[0])[0]
        except KeyError:
            return UNSET

    def unregistered(self, name):
        if name not in self.plain:
            self.plain[name] = cfg.StrOpt("x", dest=name)
        return self.plain[name]

    @staticmethod
    def value(conf, key):
        """What the service gets."""
        try:
            return conf[key[1]] if key[0] == "DEFAULT" else conf[key[0]][key[1]]
        except (Exception, RecursionError) as error:
            return type(error).__name__


def parses(path):
    try:
        cfg.ConfigParser._parse_file(path, cfg._Namespace(cfg.ConfigOpts()))
        return True
    except (cfg.ConfigFileParseError, UnicodeDecodeError):
        return False


def read_view(text):
    """Return the view without origins, and the origins {key: [part]}."""
    plain, counting, overridden, section = [], {}, {}, None
    for line in text.split("\n"):
        comment = line.startswith("# ")
        body = line[2:] if comment else line
        if body.startswith("[") and not comment:
            section = group_name(body[1:-1])
        elif "  # " in body and not body.startswith(" "):
            body, origin = body.rsplit("  # ", 1)
            key = (section, body.split(" = ", 1)[0])
            into = overridden if comment else counting
            into.setdefault(key, []).append(origin.split(",")[0])
            if comment != origin.endswith(", overridden"):
                counting[key] = ["a line whose mark contradicts its form"]
        if not comment:
            plain.append(body)
    return "\n".join(plain), counting, overridden


# Written down apart from merge-config's own rule: what must be hidden.
SECRETS = {"connection", "sql_connection", "password", "transport_url", "notification_transport_url",
           "metadata_proxy_shared_secret", "backend_argument"}


def hidden(key, written, value):
    return key[1] in SECRETS or bool(written & SECRETS) or bool(re.search("://.*@", value, re.S))


class Case:
    """One set of parts, through merge-config and through oslo.config."""

    def __init__(self, reader, table, folder, parts):
        self.reader, self.table, self.folder = reader, table, folder
        self.failures = []
        for directory in ("parts", "connections", "merged"):
            os.mkdir(os.path.join(folder, directory))
        self.sources = []
        for name, text in zip(PARTS, parts):
            path = os.path.join(folder, "connections" if name[0] == "5" else "parts", name)
            with open(path, "w", newline="", encoding="utf-8") as file:
                file.write(text)
            self.sources.append(path)

    def fail(self, *words):
        self.failures.append(" ".join(map(str, words)))

    def run(self, merge_config):
        merged = os.path.join(self.folder, "merged")
        args = ["--project=x", "--parts=%s/parts" % self.folder, "--connections=%s/connections" % self.folder,
                "--extra=%s/none" % self.folder, "--merged=" + merged, "--termination-log=%s/none" % self.folder]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            status = merge_config.main(args)
        if "s3cr3t" in printed.getvalue():
            self.fail("merge-config printed a secret")
        valid = all(map(parses, self.sources))
        if valid != (status == 0):
            self.fail("merge-config ended with", status, "but oslo.config accepts the parts:", valid)
        if valid and status == 0:
            self.compare(merged)

    def compare(self, merged):
        self.reader.read(self.reader.merged, "--config-dir", merged + "/x.conf.d")
        truth = self.reader.merged._namespace
        single = [self.reader.alone(path) for path in self.sources]
        with open(merged + "/x.conf.effective", encoding="utf-8") as file:
            text = file.read()
        if "s3cr3t" in text:
            self.fail("the view shows a secret")
        plain, counting, overridden = read_view(text)
        with open(self.folder + "/view.conf", "w", encoding="utf-8") as file:
            file.write(plain)
        self.reader.read(self.reader.view, "--config-file", self.folder + "/view.conf")
        view = self.reader.view._namespace
        expected = self.expected(truth)
        if set(counting) != expected:
            self.fail("the view lists other options than are set:", set(counting) ^ expected)
        for key in expected & set(counting):
            self.compare_option(key, truth, single, view, counting[key], overridden.get(key, []))
        self.compare_values(truth, view)

    def expected(self, namespace):
        """Every option that is set: by its registered name, else as written."""
        written = {(section, name) for file in namespace._normalized
                   for section, options in file.items() for name in options}
        registered = {key for key in self.reader.opts if self.reader.found(namespace, key) is not UNSET}
        former = {(group_name(s), n) for o in self.table for s, n in o["deprecated"]}
        return {(group_name(s), n) for s, n in registered} | (written - former)

    def compare_option(self, key, truth, single, view, origins, overridden):
        names = [k for k in self.reader.opts if (group_name(k[0]), k[1]) == key] or [key]
        found = [self.reader.found(file, names[0]) for file in single]
        setting = [(part, value) for part, value in zip(PARTS, found) if value is not UNSET]
        got, want = self.reader.found(view, names[0]), self.reader.found(truth, names[0])
        if isinstance(want, list):
            listed = [part for part, values in setting for _ in values]
            if origins != listed or overridden:
                self.fail(key, "comes from", listed, "but the view says", origins, overridden)
            pairs = zip(got, want) if len(got) == len(want) else [(got, want)]
        else:
            # A single-valued option whose table lacks it may be shown with all
            # values of the parts; the last is the one that counts.
            if origins[-1] != setting[-1][0]:
                self.fail(key, "comes from", setting[-1][0], "but the view says", origins)
            others = {part for part, _ in setting[:-1]}
            if not others <= set(overridden) | set(origins[:-1]):
                self.fail(key, "is also in", others, "but the view says", origins, overridden)
            if set(overridden) | set(origins) != {part for part, _ in setting}:
                self.fail(key, "is set in", setting, "but the view says", origins, overridden)
            if names[0] in self.reader.opts and len(origins) != 1 and key in {
                    (group_name(o["section"]), o["name"]) for o in self.table}:
                self.fail(key, "takes one value, but the view lists", origins)
            pairs = [(got, want)]
        deprecated = {n for o in self.table if (group_name(o["section"]), o["name"]) == key for _, n in o["deprecated"]}
        for shown, value in pairs:
            # A former name may be secret where the current one is not.
            may_hide = hidden(key, deprecated, str(value))
            must_hide = hidden(key, set(), str(value))
            if not (shown == value and not must_hide or shown == "***" and may_hide):
                self.fail(key, "is", repr(value), "but the view says", repr(shown))

    def compare_values(self, truth, view):
        """With what is masked put back, a service would get the same values."""
        reader, masked = self.reader, []
        for key, (opt, _) in reader.opts.items():
            shown, want = reader.found(view, key), reader.found(truth, key)
            if shown not in (want, UNSET) and "***" in shown:
                masked.append((opt.dest, None if key[0] == "DEFAULT" else key[0]))
                reader.view.set_override(masked[-1][0], want, group=masked[-1][1])
        for key in reader.opts:
            if reader.found(view, key) is UNSET is reader.found(truth, key):
                continue
            got, want = reader.value(reader.view, key), reader.value(reader.merged, key)
            if got != want:
                self.fail(key, "gives the service", repr(want), "but the view gives", repr(got))
        for name, group in masked:
            reader.view.clear_override(name, group=group)


def literals(folder, text, names):
    path = os.path.join(folder, "literals.conf")
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.write(text)
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt(name) for name in names])
    conf.register_opts([cfg.StrOpt("my_ip", default="192.0.2.1"), cfg.StrOpt("admin_token", default="t")])
    conf(["--config-file", path], project="x", default_config_files=[], default_config_dirs=[])
    return [conf[name] for name in names]


def main():
    logging.disable(logging.CRITICAL)
    asked = json.load(sys.stdin)
    merge_config = load(os.path.join(asked["scripts"], "merge-config"))
    table = [o for o in asked["registered"] if o["known"]]
    reader = Reader(asked["registered"])
    failures, accepted = [], []
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        for number, parts in enumerate(asked.get("cases", [])):
            place = os.path.join(folder, "case")
            os.mkdir(place)
            case = Case(reader, table, place, parts)
            case.run(merge_config)
            failures += [{"case": number, "text": text} for text in case.failures]
            shutil.rmtree(place)
            if failures and asked["first"]:
                break
        for text in asked.get("snippets", []):
            path = os.path.join(folder, "snippet.conf")
            with open(path, "w", newline="", encoding="utf-8") as file:
                file.write(text)
            accepted.append(parses(path))
        values = literals(folder, asked["literals"]["text"], asked["literals"]["names"] or [])
    json.dump({"failures": failures, "accepted": accepted, "literals": values,
               "secret": [n for n in asked.get("names") or [] if merge_config.is_secret_name(n)]}, sys.stdout)


main()
