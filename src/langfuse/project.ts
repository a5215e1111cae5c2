import type { Langfuse } from '../config.js';
import { isRecord, parseJson } from '../json.js';
import { version } from '../version.js';
import { connect } from './connection.js';
import { authorization, urlOf } from './endpoint.js';

/** What a server says to the keys. */
export interface ProjectAnswer {
  readonly status: number;
  /** The project that they open. */
  readonly project: { readonly id: string; readonly name: string } | undefined;
}

/** Asks a server which project the keys open; throws where there is no answer. */
export async function askForProject(langfuse: Langfuse, timeoutMs: number): Promise<ProjectAnswer> {
  const url = urlOf(langfuse, '/api/public/projects');
  const { request, agent } = await connect(url);
  try {
    const { status, body } = await new Promise<{ status: number; body: string }>((resolve, reject) => {
      const headers = { authorization: authorization(langfuse), 'user-agent': `cc-langfuse/${version}` };
      const outgoing = request(url, { agent, headers }, (incoming) => {
        let body = '';
        incoming.setEncoding('utf8');
        incoming.on('data', (chunk: string) => {
          body += chunk;
        });
        incoming.on('error', reject);
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, body }));
      });
      const late = () => {
        outgoing.destroy();
        reject(new Error(`no answer within ${timeoutMs} ms`));
      };
      setTimeout(late, timeoutMs).unref();
      outgoing.on('error', reject);
      outgoing.end();
    });
    return { status, project: projectIn(parseJson(body)) };
  } finally {
    agent.destroy();
  }
}

/** Where the sessions of a project are shown; without the project, where the server is. */
export function sessionsPage(langfuse: Langfuse, project: ProjectAnswer['project']): string {
  return urlOf(langfuse, project ? `/project/${encodeURIComponent(project.id)}/sessions` : '').href;
}

function projectIn(answer: unknown): ProjectAnswer['project'] {
  const [first] = isRecord(answer) && Array.isArray(answer.data) ? answer.data : [];
  return isRecord(first) && typeof first.id === 'string' ? { id: first.id, name: String(first.name ?? '') } : undefined;
}
