import { statSync } from 'node:fs';
import { plural, toOneLine } from '../../../cli/format.js';
import { ownCommand } from '../../../cli/own-command.js';
import { claudeFolder } from '../../../config/claude-folder.js';
import { fetchModels, hasPrice } from '../../../langfuse/models.js';
import { findTarget } from '../../../langfuse/open-destination.js';
import { nameModel } from '../../../observations/build/model-name.js';
import { attempt } from '../../../shared/attempt.js';
import { findTranscripts, projectsFolder } from '../../../transcript/sessions/find-transcripts.js';
import { readOverview } from '../../../transcript/sessions/overview.js';
import { about, type Finding } from '../finding.js';
import type { SettingsInForce } from './settings.js';

export const MODEL_CHECKS = [checkPrices];

const TIMEOUT_MS = 5_000;
/** The newest sessions say which models are in use. */
const SESSIONS_READ = 200;

/** Asks only a server whose keys are trusted. If it does not answer, the other checks say so. */
async function checkPrices({ trusted: { destination }, shell }: SettingsInForce): Promise<Finding[]> {
  const langfuse = destination && findTarget(destination).langfuse;
  const used = langfuse ? listModels(claudeFolder(shell)) : [];
  if (!langfuse || used.length === 0) return [];
  const models = await fetchModels(langfuse, { deadline: Date.now() + TIMEOUT_MS }).catch(() => undefined);
  if (!models) return [];
  const unpriced = used.filter((name) => !hasPrice(models, name));
  const prices = about('prices', { used, unpriced });
  if (unpriced.length === 0) return [prices.ok(`Langfuse has prices for ${describe(used)}`)];
  return [
    prices.warning(`Langfuse has no price for ${describe(unpriced)}, so it shows no cost`, `${ownCommand()} prices`),
  ];
}

/** Names the models as they are sent. */
function listModels(folder: string): string[] {
  const paths = attempt(() => [...findTranscripts(projectsFolder(folder), () => {})]) ?? [];
  const newest = paths
    .map((path) => ({ path, changedAt: attempt(() => statSync(path).mtimeMs) ?? 0 }))
    .toSorted((a, b) => b.changedAt - a.changedAt)
    .slice(0, SESSIONS_READ);
  const models = newest.map(({ path }) => attempt(() => readOverview(path))?.model);
  return [...new Set(models.filter((model) => model !== undefined).map(nameModel))].toSorted();
}

const SHOWN = 5;

function describe(names: readonly string[]): string {
  const more = names.length - SHOWN;
  return [...names.slice(0, SHOWN).map(toOneLine), ...(more > 0 ? [plural(more, 'other model')] : [])].join(', ');
}
