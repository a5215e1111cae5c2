<#
A platform script for Intune (Windows). "Run this script using the logged on credentials": No. "Run script in 64 bit
PowerShell Host": Yes. Node 20.19 or newer has to be in C:\Program Files\nodejs, where its installer puts it, and Claude
Code has to be 2.1.139 or newer. Change the keys, the command and the server; docs/approval.md explains them.

If you distribute settings in the registry (HKLM\SOFTWARE\Policies\ClaudeCode), Claude Code ignores this file. Then add
the JSON below to them, and leave the file: the command for the key counts only from a file.
#>
$ErrorActionPreference = 'Stop'
$version = '0.1.0'

# npm would install it for one user.
& 'C:\Program Files\nodejs\npm.cmd' install --global --ignore-scripts --prefix 'C:\Program Files\nodejs' "cc-langfuse@$version"
if ($LASTEXITCODE -ne 0) { exit 1 }

$folder = 'C:\Program Files\ClaudeCode\managed-settings.d'
New-Item -ItemType Directory -Path $folder -Force | Out-Null
$json = @'
{
  "hooks": {
    "SessionStart": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "C:\\Program Files\\nodejs\\node.exe",
            "args": [
              "C:\\Program Files\\nodejs\\node_modules\\cc-langfuse\\dist\\cli.cjs",
              "hook"
            ],
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
            "command": "C:\\Program Files\\nodejs\\node.exe",
            "args": [
              "C:\\Program Files\\nodejs\\node_modules\\cc-langfuse\\dist\\cli.cjs",
              "hook"
            ],
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
            "command": "C:\\Program Files\\nodejs\\node.exe",
            "args": [
              "C:\\Program Files\\nodejs\\node_modules\\cc-langfuse\\dist\\cli.cjs",
              "hook"
            ],
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
            "command": "C:\\Program Files\\nodejs\\node.exe",
            "args": [
              "C:\\Program Files\\nodejs\\node_modules\\cc-langfuse\\dist\\cli.cjs",
              "hook"
            ],
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
'@
# Without a byte order mark.
[System.IO.File]::WriteAllText("$folder\50-cc-langfuse.json", $json, (New-Object System.Text.UTF8Encoding($false)))
