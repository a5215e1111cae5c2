import { expect, type TestContext } from 'vitest';
import { claudeProgram } from './claude-code.js';
import { type Expected, proveArrival, proveExport } from './proof.js';
import type { Script } from './replies.js';
import { Terminal } from './terminal.js';
import { TracedHome } from './traced-home.js';

/** A session in the terminal. */
interface TypedScenario extends Expected {
  readonly args?: readonly string[];
  /** What the user does at the keyboard, until the program ends. */
  readonly typed: (user: User) => Promise<void>;
}

interface User {
  readonly terminal: Terminal;
  /** Waits for an answer and the end of its turn, and then finds it in Langfuse. */
  readonly reads: (answer: string) => Promise<void>;
  /** Finds in Langfuse everything that was answered until then. */
  readonly finds: (readAt: number) => Promise<void>;
  /** Opens the session in another terminal, too. */
  readonly resume: () => Promise<Terminal>;
}

/** Types into the real Claude Code, and proves that Langfuse then shows what is expected. */
export async function play(
  { task }: TestContext,
  script: Script,
  { args, typed, ...expected }: TypedScenario,
): Promise<void> {
  const traced = await TracedHome.open(script, { keepsPayloads: true });
  const terminals: Terminal[] = [];
  const open = async (...args: readonly string[]) => {
    const terminal = await Terminal.open(claudeProgram(), traced.claude, args);
    terminals.push(terminal);
    return terminal;
  };
  try {
    const terminal = await open(...(args ?? []));
    const finds = (readAt: number) => proveArrival(traced, readAt, task);
    const reads = async (answer: string) => {
      const readAt = await terminal.shows(answer);
      await terminal.idle();
      await finds(readAt);
    };
    const resume = () => open('--resume', traced.claude.lastSession);
    await typed({ terminal, reads, finds, resume });
    for (const each of terminals) {
      expect(await each.ended()).toBe(0);
      expect(await each.screen()).not.toMatch(/hook (error|failed|cancelled)/i);
    }
    await proveExport(traced, expected, task);
  } finally {
    await Promise.all(terminals.map((terminal) => terminal.close()));
    await traced.close();
  }
}
