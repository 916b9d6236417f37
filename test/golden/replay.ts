/**
 * npm run test:golden -- [--dir DIR] [--kubeconfig FILE | --memory] [--kubectl 27,32,33|all] [CASE…]
 *
 * Replays recorded kubectl stories and compares what is printed. The cases are no part of this repository: their
 * directory comes from --dir or NODEKEEPER_GOLDEN_DIR. A local mode without machines and controllers is started for the
 * run, or with --memory the API alone over a map; --kubeconfig names a server that runs already and will be emptied.
 * Prints a line a case, the differences of each that failed, and the sum.
 */
import { parseArgs } from 'node:util';
import { createApiClient } from '../../local/fleet/api-client.ts';
import { type KubeAccess, readKubeconfig } from '../support/kubeconfig.ts';
import { findKubectls, type Kubectl } from '../support/kubectl.ts';
import { startLocalForTest } from '../support/local.ts';
import { type GoldenCase, readCases } from './case.ts';
import { emptyCluster, NotEmptyError } from './empty-cluster.ts';
import { type CaseResult, type ReplayTarget, runCase } from './run-case.ts';

const DEFAULT_MINOR = 32;

async function run(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      dir: { type: 'string' },
      kubeconfig: { type: 'string' },
      memory: { type: 'boolean', default: false },
      kubectl: { type: 'string' },
    },
  });
  const dir = values.dir ?? process.env['NODEKEEPER_GOLDEN_DIR'];
  if (dir === undefined) return complain('no folder of cases: set --dir or NODEKEEPER_GOLDEN_DIR');
  const kubectls = chooseKubectls(values.kubectl ?? String(DEFAULT_MINOR));
  if (kubectls.length === 0) return complain(`no such kubectl here: ${values.kubectl ?? DEFAULT_MINOR}`);
  const cases = readCases(dir, positionals);

  const server = values.kubeconfig === undefined ? await startServer(values.memory) : undefined;
  try {
    const kubeconfig = values.kubeconfig ?? server!.kubeconfig;
    const access = readKubeconfig(kubeconfig);
    const servesPolicyV1 = await serves(access, '/apis/policy/v1');
    let passed = 0;
    let failed = 0;
    for (const kubectl of kubectls) {
      for (const golden of cases) {
        const { problems, durationMs } = await replay(golden, { kubectl, kubeconfig, access, servesPolicyV1 });
        if (problems.length === 0) passed += 1;
        else failed += 1;
        const verdict = problems.length === 0 ? 'ok  ' : 'FAIL';
        console.log(`${verdict} ${kubectl.name} ${golden.name}: ${golden.about} (${Math.round(durationMs)} ms)`);
        for (const line of problems) console.log(`  ${line}`);
      }
    }
    console.log(`${passed} passed, ${failed} failed`);
    return failed === 0 ? 0 : 1;
  } finally {
    await server?.stop();
  }
}

/** In an emptied cluster. One that cannot be emptied fails the case; the next may get further. */
async function replay(golden: GoldenCase, target: ReplayTarget): Promise<CaseResult> {
  try {
    await emptyCluster(target.access);
  } catch (cause) {
    if (!(cause instanceof NotEmptyError)) throw cause;
    return { name: golden.name, problems: [cause.message], durationMs: 0 };
  }
  return await runCase(golden, target);
}

async function startServer(memory: boolean): Promise<{ readonly kubeconfig: string; stop(): Promise<void> }> {
  if (!memory) return await startLocalForTest({ nodes: 0, controllers: false });
  // Only here: it runs the sources directly, while local mode bundles them first.
  const { startMemoryApi } = await import('../support/memory-api.ts');
  return await startMemoryApi();
}

function chooseKubectls(wanted: string): readonly Kubectl[] {
  const all = findKubectls();
  const releases = all.filter((kubectl) => kubectl.name !== 'kubectl');
  const candidates = releases.length > 0 ? releases : all;
  if (wanted === 'all') return candidates;
  const minors = wanted.split(',').map((release) => Number(release.replace(/^1\./, '')));
  return candidates.filter(({ minor }) => minors.includes(minor));
}

async function serves(access: KubeAccess, path: string): Promise<boolean> {
  const client = createApiClient({
    url: access.url,
    ...(access.ca === undefined ? {} : { ca: access.ca }),
    token: access.token,
    connectionsMax: 1,
    timeoutMs: 30_000,
  });
  try {
    const answer = await client.send({ method: 'GET', path });
    if (answer.kind === 'failed') throw new Error(`no answer from ${access.url}`, { cause: answer.cause });
    return answer.status === 200;
  } finally {
    client.close();
  }
}

function complain(line: string): number {
  console.error(line);
  return 2;
}

try {
  process.exitCode = await run();
} catch (cause) {
  console.error(cause);
  process.exitCode = 2;
}
