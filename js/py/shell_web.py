"""`curl` and `wget` as commands of the shell: what the network's policy allows, by urllib."""

import base64
import getopt
import os
import sys
import urllib.parse

CURL = "X:d:H:o:OLsSfiIu:A:Gm:w:vkF:e:b:"
CURL_LONG = (
    *("request=", "data=", "data-raw=", "data-binary=", "data-urlencode=", "json=", "header="),
    *("output=", "remote-name", "location", "silent", "show-error", "fail", "include", "head"),
    *("user=", "user-agent=", "get", "max-time=", "write-out=", "verbose", "url=", "compressed"),
    *("referer=", "connect-timeout=", "retry=", "no-progress-meter", "create-dirs"),
)
WGET = "qO:P:U:T:nv"
WGET_LONG = (
    *("quiet", "output-document=", "directory-prefix=", "header=", "user-agent=", "timeout="),
    *("no-verbose", "post-data=", "no-check-certificate"),
)
AGENT = "curl/8.5.0"


class Failed(Exception):
    """A status and a message."""


def curl(arguments):
    try:
        options, urls = options_of(arguments, CURL, CURL_LONG)
        urls += [value for name, value in options if name == "--url"]
        if not urls:
            raise Failed(2, "curl: no URL specified")
        for url in urls:
            fetch(url, options)
    except Failed as failed:
        status, message = failed.args
        is_quiet = has(options_or_none(arguments), "-s", "--silent")
        if message and not (is_quiet and not has(options_or_none(arguments), "-S", "--show-error")):
            print(message, file=sys.stderr)
        return status
    return 0


def options_of(arguments, short, long):
    try:
        return getopt.gnu_getopt(arguments, short, long)
    except getopt.GetoptError as error:
        raise Failed(2, f"curl: {error}") from None


def options_or_none(arguments):
    try:
        return getopt.gnu_getopt(arguments, CURL, CURL_LONG)[0]
    except getopt.GetoptError:
        return []


def has(options, *names):
    return any(name in names for name, _ in options)


def all_of(options, *names):
    return [value for name, value in options if name in names]


def last_of(options, *names):
    return (all_of(options, *names) or [None])[-1]


def fetch(url, options):
    """Makes one request of curl's, and writes what has come."""
    if "://" not in url:
        url = f"http://{url}"
    headers = {"User-Agent": last_of(options, "-A", "--user-agent") or AGENT, "Accept": "*/*"}
    body = body_of(options, headers)
    if body is not None and has(options, "-G", "--get"):
        url, body = f"{url}{'&' if '?' in url else '?'}{body.decode()}", None
    for line in all_of(options, "-H", "--header"):
        name, _, value = line.partition(":")
        headers[name.strip()] = value.strip()
    user = last_of(options, "-u", "--user")
    if user is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    method = last_of(options, "-X", "--request")
    if method is None:
        method = "HEAD" if has(options, "-I", "--head") else "GET" if body is None else "POST"
    follows = has(options, "-L", "--location")
    timeout = last_of(options, "-m", "--max-time")
    answer = ask(url, method, headers, body, follows, timeout, "curl")
    if answer.status >= 400 and has(options, "-f", "--fail"):
        raise Failed(22, f"curl: (22) The requested URL returned error: {answer.status}")
    content = answer.read()
    if has(options, "-i", "--include", "-I", "--head"):
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        content = "\r\n".join([*lines, "", ""]).encode() + content
    target = last_of(options, "-o", "--output")
    if has(options, "-O", "--remote-name"):
        target = name_of(url)
    save(content, target, "curl: (23)")
    shown = last_of(options, "-w", "--write-out")
    if shown is not None:
        known = {"http_code": str(answer.status), "size_download": str(len(content))}
        for name, value in known.items():
            shown = shown.replace("%{" + name + "}", value)
        sys.stdout.write(shown.replace("\\n", "\n").replace("\\t", "\t"))


def body_of(options, headers):
    pieces = []
    for name, value in options:
        if name == "--json":
            headers.update({"Content-Type": "application/json", "Accept": "application/json"})
        elif name == "--data-urlencode":
            key, separator, text = value.rpartition("=")
            value = key + separator + urllib.parse.quote(text)
        elif name not in ("-d", "--data", "--data-raw", "--data-binary"):
            continue
        if value.startswith("@") and name != "--data-raw":
            pieces.append(contents(value[1:], name == "--data-binary"))
        else:
            pieces.append(value.encode())
    if not pieces:
        return None
    headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
    return b"&".join(pieces)


def contents(path, is_binary):
    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
    except OSError:
        raise Failed(26, f"curl: (26) Failed to open {path}") from None
    return data if is_binary else data.replace(b"\r", b"").replace(b"\n", b"")


def ask(url, method, headers, body, follows, timeout, who):
    """The answer of a server, whatever its status is."""
    import urllib.error
    import urllib.request

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    opener = urllib.request.build_opener(*([] if follows else [Stay]))
    opener.addheaders = []
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        return opener.open(request, timeout=None if timeout is None else float(timeout))
    except urllib.error.HTTPError as answer:
        return answer
    except ValueError as error:
        raise Failed(3, f"{who}: (3) {error}") from None
    except TimeoutError:
        raise Failed(28, f"{who}: (28) Operation timed out") from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        status = 28 if isinstance(reason, TimeoutError) else 7
        raise Failed(status, f"{who}: ({status}) {reason}") from None


def name_of(url):
    name = os.path.basename(urllib.parse.urlsplit(url).path)
    if not name:
        raise Failed(23, "curl: (23) Remote file name has no length")
    return name


def save(content, target, who):
    if target is None or target == "-":
        sys.stdout.buffer.write(content)
        return
    try:
        with open(target, "wb") as file:
            file.write(content)
    except OSError as error:
        raise Failed(23, f"{who} {target}: {error.strerror}") from None


def wget(arguments):
    try:
        options, urls = options_of(arguments, WGET, WGET_LONG)
    except Failed as failed:
        print(failed.args[1].replace("curl", "wget", 1), file=sys.stderr)
        return 2
    if not urls:
        print("wget: missing URL", file=sys.stderr)
        return 1
    status = 0
    for url in urls:
        status = max(status, download(url if "://" in url else f"http://{url}", options))
    return status


def download(url, options):
    is_quiet = has(options, "-q", "--quiet")
    headers = {"User-Agent": last_of(options, "-U", "--user-agent") or "Wget/1.21.4"}
    for line in all_of(options, "--header"):
        name, _, value = line.partition(":")
        headers[name.strip()] = value.strip()
    data = last_of(options, "--post-data")
    body = None if data is None else data.encode()
    timeout = last_of(options, "-T", "--timeout")
    target = last_of(options, "-O", "--output-document")
    if target is None:
        name = os.path.basename(urllib.parse.urlsplit(url).path) or "index.html"
        target = os.path.join(last_of(options, "-P", "--directory-prefix") or "", name)
    try:
        method = "GET" if body is None else "POST"
        answer = ask(url, method, headers, body, True, timeout, "wget")
        if answer.status >= 400:
            raise Failed(8, f"{url}: ERROR {answer.status}: {answer.reason}.")
        content = answer.read()
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        save(content, target, "wget:")
    except Failed as failed:
        status, message = failed.args
        if not is_quiet:
            print(message, file=sys.stderr)
        return {7: 4, 28: 4, 23: 3}.get(status, status)
    if not is_quiet:
        print(f"{url} -> {target} [{len(content)}]", file=sys.stderr)
    return 0
