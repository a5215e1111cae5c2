// Looks at each transcript (stats), or reads all of its bytes (bytes), and does nothing with them.
const { closeSync, lstatSync, openSync, readdirSync, readSync } = require('node:fs');
const { join } = require('node:path');
const [, , what, projects] = process.argv;
const chunk = Buffer.allocUnsafe(1 << 18);
for (const project of readdirSync(projects)) {
  for (const name of readdirSync(join(projects, project))) {
    const path = join(projects, project, name);
    if (what === 'stats') {
      lstatSync(path);
      continue;
    }
    const file = openSync(path, 'r');
    while (readSync(file, chunk) > 0);
    closeSync(file);
  }
}
