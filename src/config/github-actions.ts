import { withoutUndefined } from '../shared/json.js';

/** What GitHub tells a job of itself; undefined where there is none. */
export function githubMetadata(env: NodeJS.ProcessEnv): { [name: string]: string } | undefined {
  if (env.GITHUB_ACTIONS !== 'true') return undefined;
  const {
    GITHUB_SERVER_URL: server,
    GITHUB_REPOSITORY: repository,
    GITHUB_RUN_ID: run,
    GITHUB_RUN_ATTEMPT: attempt,
  } = env;
  const isAddressable = server && repository && run;
  const page = [server, repository, 'actions/runs', run, ...(attempt ? ['attempts', attempt] : [])].join('/');
  return withoutUndefined({
    github_repository: repository || undefined,
    github_run_id: run || undefined,
    github_run_attempt: attempt || undefined,
    github_run_url: isAddressable ? page : undefined,
    github_pull_request: /^refs\/pull\/(\d+)\//.exec(env.GITHUB_REF ?? '')?.[1],
    github_actor: env.GITHUB_ACTOR || undefined,
    github_workflow: env.GITHUB_WORKFLOW || undefined,
    github_sha: env.GITHUB_SHA || undefined,
  });
}
