import { ownCommand } from '../../cli/own-command.js';
import { listSessions, ranIn } from '../../cli/session-selection.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { commandEnvironment, readCleanupDays, readSettingsFiles } from '../../config/claude-settings.js';
import { hasSubscription } from '../../config/login.js';
import { readSettings } from '../../config/settings.js';
import { findUnsent, type Unsent } from '../../export/deletion.js';
import { SessionStates } from '../../export/session-state.js';
import { countUntraced } from '../../export/untraced-turns.js';
import { findTarget } from '../../langfuse/open-destination.js';
import { findKnownPage } from '../../langfuse/project-page.js';
import { INGESTION_ONLY } from '../../langfuse/server.js';
import type { Target } from '../../langfuse/target.js';
import { attempt } from '../../shared/attempt.js';
import { version } from '../../shared/version.js';
import { isMutedNow } from '../../state/runs.js';
import { isForIngestion } from '../../state/servers.js';
import { StateStore } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { SessionIndex } from '../../transcript/sessions/session-index.js';
import { HOOK_CHECKS, readHookSetup } from '../doctor/checks/hooks.js';
import { listPending } from '../doctor/checks/sessions.js';
import { readSettingsInForce, SETTING_CHECKS, type SettingsInForce } from '../doctor/checks/settings.js';
import type { Finding } from '../doctor/finding.js';
import { createMask, maskPublicKey, showUrl } from '../doctor/masking.js';
import { findNewestTurn, findSentTurn, type Goal, type SentTurn } from './last-turn.js';
import { readSpent, type Spent } from './spent.js';

export interface Status {
  readonly version: string;
  readonly tracing: {
    readonly isOn: boolean;
    /** Whether it is on or off in this directory, and who says so. */
    readonly message: string;
    /** How to change that if it is off. */
    readonly fix?: string | undefined;
    /** What keeps turns from being sent although tracing is on. */
    readonly problems: readonly string[];
  };
  readonly destination: ShownDestination | undefined;
  /** The destination in words. */
  readonly sendsTo: string;
  /** Of the newest session of this directory; `turn` is undefined if nothing of it was sent. */
  readonly here: Here | undefined;
  /** The newest turn of any session that was sent. */
  readonly newest: SentTurn | undefined;
  readonly pending: readonly Pending[];
  /** Undefined if nothing was used since Monday. */
  readonly spent: Spent | undefined;
  /** Whether today's login does not bill dollars. */
  readonly isSubscription: boolean;
  /** The sessions that would be lost with their transcripts, which Claude Code deletes after so many days. */
  readonly unsent: (Unsent & { readonly cleanupDays: number }) | undefined;
}

interface ShownDestination {
  readonly kind: string;
  readonly url: string;
  readonly publicKey?: string;
  /** Whether a command has found that the keys may write, and not read. */
  readonly ingestionOnly?: true;
}

interface Here {
  readonly sessionId: string;
  readonly turn: SentTurn | undefined;
  /** How many of its turns stay here, since nothing says that tracing was on. */
  readonly untraced: number;
  /** How many parts of it belong to no known prompt or call. */
  readonly strays: number;
  readonly muted: boolean;
}

type Pending = Pick<ReturnType<typeof listPending>[number], 'sessionId' | 'attempts' | 'reason' | 'since'>;

/** Finds out how things are without asking the server. Nothing of what it returns contains a key. */
export async function readStatus(env: NodeJS.ProcessEnv, cwd: string): Promise<Status> {
  const files = readSettingsFiles(env, cwd);
  const settings = await readSettingsInForce(env, files, cwd);
  const context = { ...readHookSetup(files), ...settings };
  const findings = [...HOOK_CHECKS, ...SETTING_CHECKS].flatMap((check): Finding[] => {
    const found = check(context);
    return Symbol.iterator in found ? [...found] : [found];
  });
  const folder = stateFolder(settings.hookEnv);
  const state = new StateStore(folder);
  const index = new SessionIndex(folder);
  const sessions = listSessions(claudeFolder(settings.hookEnv), () => {}, index);
  const here = sessions.find(ranIn(cwd));
  const target = await findHookTarget(settings);
  const goal = { destination: target?.id, projectPage: target && findKnownPage(target, folder) };
  const isIngestionOnly = target !== undefined && isForIngestion(folder, target.id);
  const cleanupDays = readCleanupDays(files);
  const states = new SessionStates(state, env, target?.id, index);
  const unsent = await findUnsent(sessions, states, cleanupDays, Date.now());
  const spent = readSpent(sessions, { claude: claudeFolder(settings.hookEnv), state: folder }, index, new Date());
  index.save();
  const mask = createMask([settings.hookEnv, commandEnvironment(env)]);
  const unreadable: string[] = [];
  const known = state.all((path) => unreadable.push(path));
  const isMuted = isMutedNow(known.find(({ session }) => session.id === here?.sessionId)?.session.mutes);
  return mask({
    version,
    tracing: describeTracing(findings, isMuted ? here?.sessionId : undefined, unreadable),
    destination: target && showTarget(target, isIngestionOnly),
    sendsTo: target ? describeTarget(target, isIngestionOnly) : 'nowhere: the keys or the URL are missing',
    here: here && { ...describeHere(here, state, goal), muted: isMuted },
    newest: findNewestTurn(sessions, state, goal),
    pending: listPending(known).map(({ destination: _, ...each }) => each),
    spent,
    isSubscription: hasSubscription(settings.hookEnv, cwd),
    unsent: unsent && { ...unsent, cleanupDays },
  });
}

/** Whether nothing waits, and nothing but the user's own mute keeps turns from being sent. */
export function isAllWell({ pending, tracing: { problems }, here }: Status): boolean {
  return pending.length === 0 && (problems.length === 0 || isMuteAlone(problems, here));
}

/** Whether the one problem is that the user has muted the session. */
export function isMuteAlone(problems: readonly string[], here: Here | undefined): boolean {
  return problems.length === 1 && (here?.muted ?? false);
}

function describeHere(session: SessionOverview, state: StateStore, goal: Goal): Omit<Here, 'muted'> {
  const { sessionId } = session;
  const entry = attempt(() => state.readNewest(sessionId));
  const untraced = attempt(() => countUntraced(session, entry)) ?? 0;
  return { sessionId, turn: findSentTurn(session, state, goal), untraced, strays: entry?.strays?.length ?? 0 };
}

/** Claude Code keeps a plugin's secret key to itself, but the rest says where its hooks send to. */
async function findHookTarget({ settings, plugin, hookEnv }: SettingsInForce): Promise<Target | undefined> {
  const isKept = settings.destination === undefined && plugin !== undefined;
  const { destination } = isKept ? await readSettings({ ...hookEnv, CC_LANGFUSE_SECRET_KEY: 'kept' }) : settings;
  return destination && findTarget(destination);
}

function describeTracing(
  findings: readonly Finding[],
  muted: string | undefined,
  unreadable: readonly string[],
): Status['tracing'] {
  const tracing = findings.find(({ name }) => name === 'tracing');
  const isOn = tracing?.status === 'ok';
  const broken = findings.filter(({ status, name }) => status === 'broken' && name !== 'tracing');
  const problems = [
    ...broken.map(({ name, message }) => `${name}: ${message}`),
    ...unreadable.map((path) => `state: ${path} cannot be read, so nothing of its session is sent`),
    ...(muted === undefined
      ? []
      : [`muted: the newest session of this directory is muted; ${ownCommand()} unmute ${muted} ends that`]),
  ];
  return { isOn, message: tracing?.message ?? '', fix: tracing?.fix, problems: isOn ? problems : [] };
}

function showTarget({ kind, url, langfuse }: Target, isIngestionOnly: boolean): Status['destination'] {
  const publicKey = langfuse && maskPublicKey(langfuse.publicKey);
  return { kind, url: showUrl(url), ...(publicKey && { publicKey }), ...(isIngestionOnly && { ingestionOnly: true }) };
}

function describeTarget({ name, url, langfuse }: Target, isIngestionOnly: boolean): string {
  if (!langfuse) return `${name} at ${showUrl(url)}`;
  const keys = isIngestionOnly ? `, with keys ${INGESTION_ONLY}` : '';
  return `${showUrl(url)} (${maskPublicKey(langfuse.publicKey)})${keys}`;
}
