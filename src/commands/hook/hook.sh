#!/bin/sh
# hook.sh <event> [path of node]: what Claude Code starts for each event, and for its status line. Node takes many times as long to
# start as this script, so it starts in the background, and outlives Claude Code. It is in front only if Claude Code has to wait.
set -u
# Claude Code shows any other exit code to the user.
trap 'exit 0' EXIT

event=${1:-}
node=${2:-node}

case $0 in
*/*) folder=${0%/*} ;;
*) folder=. ;;
esac
program=$folder/cli.cjs
# npm links the launcher and the program next to each other, without the other files.
[ -f "$program" ] || program=$folder/cc-langfuse
[ -f "$program" ] || exit

# Puts the project's settings, which may set what this script and Node act on, into $text.
read_project_settings() {
  text=
  project=${CLAUDE_PROJECT_DIR:-$PWD}
  set --
  for folder in "$project" "$PWD"; do
    for file in "$folder/.claude/settings.json" "$folder/.claude/settings.local.json"; do
      [ -f "$file" ] && set -- "$@" "$file"
    done
    [ "$project" = "$PWD" ] && break
  done
  [ "$#" -gt 0 ] || return 0
  # A PATH of the project's could name another cat.
  if [ -x /bin/cat ]; then
    text=$(/bin/cat -- "$@")
    return
  fi
  for file; do
    while IFS= read -r line || [ -n "$line" ]; do text=$text$line; done <"$file"
  done
}

# Node parses the files, but some variables act before any of its code does. If a project may have set one, it waits under another
# name until Node knows whose it is. Node has the same list, in platform.ts.
hold_back() {
  read_project_settings
  case $text in
  # A name may also be written with escapes.
  *'"env"'* | *'\u'*) ;;
  *) return 0 ;;
  esac
  for name in NODE_OPTIONS NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA NODE_USE_ENV_PROXY NODE_PATH NODE_COMPILE_CACHE \
    NODE_V8_COVERAGE NODE_REDIRECT_WARNINGS NODE_ICU_DATA NODE_DEBUG NODE_DEBUG_NATIVE NODE_CHANNEL_FD NODE_UNIQUE_ID \
    OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES \
    DYLD_LIBRARY_PATH DYLD_FRAMEWORK_PATH DYLD_FALLBACK_LIBRARY_PATH \
    PATH HOME CLAUDE_CONFIG_DIR CC_LANGFUSE_STATE_DIR CC_LANGFUSE_WAIT CI; do
    case $text in
    *"\"$name\""* | *'\u'*) ;;
    *) continue ;;
    esac
    eval "value=\${$name:-}"
    [ -n "$value" ] || continue
    export "HOOK_SH_HELD_$name=$value"
    unset "$name"
  done
  [ -n "${PATH:-}" ] || export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/homebrew/bin
}

session=${CLAUDE_CODE_SESSION_ID:-}

# Here it is only looked at: Node sees whether a project has set the variable, which counts for nothing.
find_state() {
  case ${CC_LANGFUSE_STATE_DIR:-} in
  /*) state=$CC_LANGFUSE_STATE_DIR ;;
  *) state=${CLAUDE_CONFIG_DIR:-${HOME:-}/.claude}/state ;;
  esac
  sessions=$state/cc-langfuse_sessions
}

# Whether a process in the background has seen that a turn, or the day, has used more than CC_LANGFUSE_BUDGET.
has_budget_message() {
  [ -f "$sessions/$session/budget" ] || [ -f "$state/cc-langfuse_budget" ]
}

# It has run after a tool, and Claude Code waits: normally that is all.
if [ "$event" = PostToolUse ]; then
  find_state
  has_budget_message || exit
fi

hold_back 2>/dev/null
find_state

# Prints what a worker has left about the session for Claude Code's status line. Claude Code waits for it, so Node is not started.
print_status_line() {
  payload=$(cat)
  session=${payload#*'"session_id":"'}
  session=${session%%'"'*}
  case $session in
  '' | *[!A-Za-z0-9_-]*) exit ;;
  esac
  # Workers write the text if this file is there.
  [ -e "$state/cc-langfuse_statusline" ] || is_held_folder ||
    (umask 077 && mkdir -p "$state" && : >"$state/cc-langfuse_statusline") 2>/dev/null
  text=traced
  [ -f "$sessions/$session/status" ] && IFS= read -r text <"$sessions/$session/status"
  [ -e "$sessions/$session/open" ] || text='not traced'
  case $text in
  *[!A-Za-z0-9,\ ]*) text=traced ;;
  esac
  printf 'Langfuse: %s\n' "$text"
}

# Whether the folder of the state is another one, if a project has not chosen it.
is_held_folder() {
  [ -n "${HOOK_SH_HELD_HOME:-}${HOOK_SH_HELD_CLAUDE_CONFIG_DIR:-}${HOOK_SH_HELD_CC_LANGFUSE_STATE_DIR:-}" ]
}

is_blank() {
  case $1 in
  *[![:space:]]*) return 1 ;;
  esac
}

# Whether Node has to say in the terminal why nothing can be sent, which it does once per session.
has_notice() {
  [ -n "$session" ] && [ -e "$sessions/$session/told" ] && return 1
  [ -e "$state/cc-langfuse_refused" ] && return 0
  is_blank "${CC_LANGFUSE_OTLP_URL:-}" || return 1
  is_blank "${CC_LANGFUSE_PUBLIC_KEY:-}${LANGFUSE_PUBLIC_KEY:-}${CLAUDE_PLUGIN_OPTION_PUBLIC_KEY:-}" ||
    is_blank "${CC_LANGFUSE_SECRET_KEY:-}${LANGFUSE_SECRET_KEY:-}${CLAUDE_PLUGIN_OPTION_SECRET_KEY:-}${CC_LANGFUSE_SECRET_KEY_COMMAND:-}"
}

# An upgrade may have removed the registered Node. Version managers keep the others next to it; desktop apps have a short PATH.
find_node() {
  [ -f "$node" ] && [ -x "$node" ] && return
  gone=$node
  node=node
  # Without a path, it is the one on the PATH that is meant.
  [ "$gone" = node ] && command -v node >/dev/null && return
  for candidate in "$(command -v node)" "${gone%/*/bin/node}"/*[2-9][0-9].*.*/bin/node \
    "${gone%/*/installation/bin/node}"/*[2-9][0-9].*.*/installation/bin/node \
    /opt/homebrew/bin/node /usr/local/bin/node /usr/bin/node /home/linuxbrew/.linuxbrew/bin/node \
    "${HOME:-}/.volta/bin/node" "${HOME:-}"/.nvm/versions/node/*[2-9][0-9].*.*/bin/node; do
    if [ -x "$candidate" ] && "$candidate" -e "$new_enough" </dev/null >/dev/null 2>&1; then
      node=$candidate
      return
    fi
  done
}
new_enough='const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'

in_front() {
  find_node
  exec "$node" "$program" hook 2>/dev/null
}

# Prints how long the transcript is. The worker looks at it when the next prompt may already be in it.
measure_transcript() {
  path=${payload#*'"transcript_path":"'}
  path=${path%%'"'*}
  case $path in
  *\\* | [!/]*) ;; # Escaped, or no path: the worker measures it.
  *) if [ -f "$path" ]; then wc -c <"$path"; else echo 0; fi ;;
  esac
}

in_background() {
  # Claude Code waits for any process that keeps its pipes open.
  exec >/dev/null 2>&1
  # All of it: it can be larger than a pipe holds, and Claude Code closes its end when this script ends.
  payload=$(cat)
  exec </dev/null
  find_node
  bytes=
  command=worker
  [ "$event" = UserPromptSubmit ] && command=follow
  [ "$event" = SessionStart ] && bytes=$(measure_transcript)
  # A session of its own is not stopped with Claude Code. Without setsid, as on macOS, a process group of its own has to do.
  separately=
  # zsh, which may be the sh of macOS, would end here without a terminal.
  if command -v setsid; then separately=setsid; elif (set -m); then set -m; fi
  trap '' HUP INT TERM
  # shellcheck disable=SC2086 # They may be empty.
  printf '%s' "$payload" | $separately "$node" "$program" $command $bytes &
  exit
}

# Several hooks may find the message. Only the one that renames it shows it.
show_budget_message() {
  for file in "$sessions/$session/budget" "$state/cc-langfuse_budget"; do
    [ -f "$file" ] || continue
    mv "$file" "$file.$$" 2>/dev/null || continue
    IFS= read -r message <"$file.$$" && printf '%s\n' "$message"
    rm -f "$file.$$"
    return
  done
}

# doctor asks which Node is started.
if [ "$event" = --node ]; then
  find_node
  printf '%s\n' "$node"
  exit
fi

# Only for turns that are to be seen while they run. What is printed here could become a part of the prompt.
if [ "$event" = UserPromptSubmit ]; then
  [ "${CC_LANGFUSE_LIVE:-${CLAUDE_PLUGIN_OPTION_LIVE:-}}" = true ] || exit
  [ "${CC_TRACE_TO_LANGFUSE:-${TRACE_TO_LANGFUSE:-}}" = true ] || exit
  in_background
fi

if [ "$event" = statusline ]; then
  print_status_line
  exit
fi

case ${CLAUDE_CODE_ENTRYPOINT:-} in
'' | sdk*) is_headless=true ;;
*) is_headless=${CI:+true} ;;
esac

# Of a subagent, Claude Code shows nothing.
if [ "$event" = PostToolUse ]; then
  case $(cat) in
  *'"agent_id":"'*) ;;
  *) [ "$is_headless" = true ] || show_budget_message ;;
  esac
  exit
fi

# The user has typed a command of the plugin and waits for its answer.
if [ "$event" = UserPromptExpansion ]; then
  find_node
  exec "$node" "$program" slash-command 2>/dev/null
fi

if [ "${CC_TRACE_TO_LANGFUSE:-${TRACE_TO_LANGFUSE:-}}" != true ]; then
  # If the session was traced before, the worker records that it no longer is. Older versions of Claude Code do not name the session.
  was_traced=$sessions/$session/open
  [ -n "$session" ] || was_traced=$sessions
  if [ -e "$was_traced" ] || is_held_folder; then in_background; fi
  exit
fi

has_own_notice=
if [ "$is_headless" != true ]; then
  # Claude Code reads only one, and at the end of a session nobody reads any.
  if has_notice; then has_own_notice=true; elif [ "$event" != SessionEnd ]; then show_budget_message; fi
fi

case $event in
SessionStart) ;;
SessionEnd)
  # The container may end with Claude Code, so the last event waits until everything has been sent.
  if [ "$is_headless" = true ] || [ "${CC_LANGFUSE_WAIT:-}" = 1 ]; then in_front; fi
  ;;
*) [ "${CC_LANGFUSE_WAIT:-}" = 1 ] && in_front ;;
esac

[ "$has_own_notice" = true ] && in_front
in_background
