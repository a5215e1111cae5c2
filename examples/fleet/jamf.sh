#!/bin/sh
# A script for a Jamf policy, which runs it as root on each Mac. Node 20.19 or newer has to be in /usr/local, where the
# installer of nodejs.org puts it. Change the keys, the command and the server; docs/approval.md explains them.
#
# If you distribute a configuration profile for com.anthropic.claudecode, Claude Code ignores this file. Then add what
# com.anthropic.claudecode.plist has to the profile, and leave the file: the command for the key counts only from a file.
set -eu
version=0.1.0

PATH=/usr/local/bin:/usr/bin:/bin npm install --global --ignore-scripts --prefix /usr/local "cc-langfuse@$version"

folder='/Library/Application Support/ClaudeCode/managed-settings.d'
umask 022
mkdir -p "$folder"
# In one step: Claude Code may be reading it.
cat >"$folder/.50-cc-langfuse.json" <<'END'
{
  "hooks": {
    "SessionStart": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "exec \"/usr/local/lib/node_modules/cc-langfuse/dist/hook.sh\" SessionStart \"/usr/local/bin/node\"",
            "timeout": 5
          }
        ]
      }
    ],
    "Stop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "exec \"/usr/local/lib/node_modules/cc-langfuse/dist/hook.sh\" Stop \"/usr/local/bin/node\"",
            "timeout": 15
          }
        ]
      }
    ],
    "StopFailure": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "exec \"/usr/local/lib/node_modules/cc-langfuse/dist/hook.sh\" StopFailure \"/usr/local/bin/node\"",
            "timeout": 15
          }
        ]
      }
    ],
    "SessionEnd": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "exec \"/usr/local/lib/node_modules/cc-langfuse/dist/hook.sh\" SessionEnd \"/usr/local/bin/node\"",
            "timeout": 15
          }
        ]
      }
    ]
  },
  "env": {
    "TRACE_TO_LANGFUSE": "true",
    "LANGFUSE_PUBLIC_KEY": "pk-lf-1",
    "LANGFUSE_BASE_URL": "https://langfuse.example.com",
    "LANGFUSE_USER_ID": "git",
    "CC_LANGFUSE_SECRET_KEY_COMMAND": "vault kv get -field=secret_key secret/langfuse-1"
  }
}
END
mv "$folder/.50-cc-langfuse.json" "$folder/50-cc-langfuse.json"
