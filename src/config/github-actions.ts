import type { TraceKey } from '../observations/metadata-keys.js';
import { withoutUndefined } from '../shared/json.js';

/** Returns what GitHub Actions says about the job that it runs; undefined outside of a job. */
export function githubMetadata(env: NodeJS.ProcessEnv): { [name: string]: string } | undefined {
  if (env.GITHUB_ACTIONS !== 'true') return undefined;
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: run } = env;
  const attempt = env.GITHUB_RUN_ATTEMPT;
  const url = [server, repository, 'actions/runs', run, ...(attempt ? ['attempts', attempt] : [])].join('/');
  return withoutUndefined({
    github_repository: repository || undefined,
    github_run_id: run || undefined,
    github_run_attempt: attempt || undefined,
    github_run_url: server && repository && run ? url : undefined,
    github_pull_request: /^refs\/pull\/(\d+)\//.exec(env.GITHUB_REF ?? '')?.[1],
    github_actor: env.GITHUB_ACTOR || undefined,
    github_workflow: env.GITHUB_WORKFLOW || undefined,
    github_sha: env.GITHUB_SHA || undefined,
  } satisfies { [key in TraceKey]?: string | undefined });
}
