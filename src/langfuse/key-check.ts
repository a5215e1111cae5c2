import type { LangfuseConfig } from '../config/settings.js';
import { askForProject, type ProjectAnswer } from './project.js';
import { describeRefusal } from './receiver.js';

const WAIT_MS = 10_000;

/** What became of trying the keys; `problem` is a sentence for whoever gave them. */
export type KeyCheck =
  | { readonly kind: 'open'; readonly project: NonNullable<ProjectAnswer['project']> }
  | { readonly kind: 'refused' | 'unreachable' | 'no Langfuse'; readonly problem: string };

/** Tries the keys at their server, which learns nothing by it. */
export async function checkKeys(langfuse: LangfuseConfig): Promise<KeyCheck> {
  const { host } = langfuse.baseUrl;
  try {
    const { status, project } = await askForProject(langfuse, WAIT_MS);
    if (status === 401 || status === 403) return { kind: 'refused', problem: describeRefusal(langfuse, status) };
    if (status === 200 && project) return { kind: 'open', project };
    return { kind: 'no Langfuse', problem: `${host} answers (${status}), but not as Langfuse does` };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { kind: 'unreachable', problem: `${host} cannot be reached: ${code ?? message}` };
  }
}
