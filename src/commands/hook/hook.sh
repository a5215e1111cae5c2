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

# Here it is only looked at: Node sees whether a project has set the variable, which counts for nothing.
case ${CC_LANGFUSE_STATE_DIR:-} in
/*) state=$CC_LANGFUSE_STATE_DIR ;;
*) state=${CLAUDE_CONFIG_DIR:-${HOME:-}/.claude}/state ;;
esac
session=${CLAUDE_CODE_SESSION_ID:-}
# The pipes of the worker that stands by for a headless run's events. They are named after the process of Claude Code, too, since
# several can have the same session. The user's keys pass through them, so they are in no folder that a project may have chosen.
standby=
[ -n "${CC_LANGFUSE_STATE_DIR:-}${CLAUDE_CONFIG_DIR:-}" ] || standby=$state/cc-langfuse_standby/$session.${CLAUDE_PID:-}
is_headless=

# Prints what a worker has left about the session for Claude Code's status line. Claude Code waits for it, so Node is not started.
print_status_line() {
  payload=$(cat)
  session=${payload#*'"session_id":"'}
  session=${session%%'"'*}
  case $session in
  '' | *[!A-Za-z0-9_-]*) exit ;;
  esac
  # Workers write into this folder if it is there.
  [ -d "$state/cc-langfuse_status" ] || (umask 077 && mkdir -p "$state/cc-langfuse_status") 2>/dev/null
  text=traced
  [ -f "$state/cc-langfuse_status/$session" ] && IFS= read -r text <"$state/cc-langfuse_status/$session"
  [ -e "$state/cc-langfuse_open/$session" ] || text='not traced'
  case $text in
  *[!A-Za-z0-9,\ ]*) text=traced ;;
  esac
  # Claude Code's own account, cut to cents.
  case $payload in
  *'"total_cost_usd":'[0-9]*)
    cost=${payload#*'"total_cost_usd":'}
    cost=${cost%%[!0-9.e-]*}
    cents=00
    case $cost in
    *e-*) cost=0 ;;
    *.*) cents=${cost#*.}0 ;;
    esac
    text="$text, \$${cost%%.*}.${cents%"${cents#??}"}"
    ;;
  esac
  printf 'Langfuse: %s\n' "$text"
}

# Prints once where the session is in Langfuse, for the terminal to show.
show_link() {
  link=
  IFS= read -r link <"$state/cc-langfuse_links/$session"
  case $link in
  *[!A-Za-z0-9:/._~%?=-]*) return ;;
  http://* | https://*) ;;
  *) return ;;
  esac
  : >"$state/cc-langfuse_links/$session"
  printf '{"systemMessage":"This session is in Langfuse: %s"}\n' "$link"
}

is_blank() {
  case $1 in
  *[![:space:]]*) return 1 ;;
  esac
}

# Whether Node has to say in the terminal why nothing can be sent, which it does once per session.
has_notice() {
  [ -n "$session" ] && [ -e "$state/cc-langfuse_told/$session" ] && return 1
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

# Prepares a worker that will also handle the run's later events, so that Node is started once.
make_standby() {
  [ -n "$standby" ] || return 1
  case $session,${CLAUDE_PID:-} in
  ,* | *, | *,*[!0-9]* | *[!A-Za-z0-9_,-]*) return 1 ;;
  esac
  # A session can start more than once in a run.
  [ ! -e "$standby.in" ] || return 1
  [ -d "${standby%/*}" ] || (umask 077 && mkdir -p "${standby%/*}")
  mkfifo -m 600 "$standby.in" "$standby.out" || return 1
  exec 3<>"$standby.in" 4<>"$standby.out"
}

# Passes the event with its environment to the worker that stands by; with `wait`, returns when everything has been sent. Fails if
# there is no such worker any more.
hand_over() {
  [ -n "$standby" ] && [ -p "$standby.in" ] && [ -p "$standby.out" ] || return 1
  trap '' PIPE
  # Opening a pipe waits for its other end, unless this process has both.
  # shellcheck disable=SC2094
  exec 3<>"$standby.in" 4>"$standby.in" 5<>"$standby.out" 6<"$standby.out" 3>&- 5>&-
  if { printf '\000event\000' && env -0 && printf 'payload\000%s\000' "$payload"; } 2>/dev/null >&4; then
    exec 4>&-
    if [ "${1:-}" != wait ] || read -r _ <&6; then return; fi
  fi
  exec 4>&- 6<&-
  trap - PIPE
  return 1
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
  set -- worker
  case $event in
  UserPromptSubmit) set -- follow ;;
  SessionStart)
    [ "$is_headless" = true ] && make_standby && set -- standby "$standby"
    bytes=$(measure_transcript)
    set -- "$@" ${bytes:+"$bytes"}
    ;;
  *) [ "$is_headless" = true ] && hand_over && exit ;;
  esac
  find_node
  # A session of its own is not stopped with Claude Code. Without setsid, as on macOS, a process group of its own has to do.
  separately=
  if command -v setsid; then separately=setsid; else set -m; fi
  trap '' HUP INT TERM
  printf '%s' "$payload" | $separately "$node" "$program" "$@" &
  exit
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

# The user has typed a command of the plugin and waits for its answer.
if [ "$event" = UserPromptExpansion ]; then
  find_node
  exec "$node" "$program" slash-command 2>/dev/null
fi

if [ "${CC_TRACE_TO_LANGFUSE:-${TRACE_TO_LANGFUSE:-}}" != true ]; then
  # If the session was traced before, the worker records that it no longer is. Older versions of Claude Code do not name the session.
  [ -e "$state/cc-langfuse_open/$session" ] && in_background
  exit
fi

if [ "$event" != SessionStart ] && [ "${CC_LANGFUSE_WAIT:-}" = 1 ]; then in_front; fi

case ${CLAUDE_CODE_ENTRYPOINT:-} in
'' | sdk*) is_headless=true ;;
*) is_headless=${CI:+true} ;;
esac

# The container may end with Claude Code, so the last event waits until everything has been sent.
if [ "$event" = SessionEnd ] && [ "$is_headless" = true ]; then
  payload=$(cat)
  hand_over wait && exit
  find_node
  printf '%s' "$payload" | "$node" "$program" hook 2>/dev/null
  exit
fi

if [ "$is_headless" != true ]; then
  has_notice && in_front
  [ -n "$session" ] && [ "$event" != SessionStart ] && [ -s "$state/cc-langfuse_links/$session" ] && show_link
fi
in_background
