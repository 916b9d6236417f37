/** Replays recorded kubectl stories and compares what is printed. */
import { parseArgs } from 'node:util';
import { apiClientOf, readKubeconfig } from '../support/kubeconfig.ts';
import { findKubectls, type Kubectl } from '../support/kubectl.ts';
import { startLocalForTest } from '../support/local.ts';
import { AnswerError, answerOf, type Command, UsageError } from './command.ts';
import { type GoldenCase, readCases } from './golden/case.ts';
import { emptyCluster } from './golden/empty-cluster.ts';
import { type CaseResult, type ReplayTarget, runCase } from './golden/run-case.ts';

const USAGE = `npm run peer -- golden [options] [CASE…]

--dir DIR          folder of the cases (default: NODEKEEPER_GOLDEN_DIR)
--kubectl 27,32    releases of kubectl, or all (default: 32)
--kubeconfig FILE  a server that runs already and will be emptied (default: a local mode without machines and controllers)
--memory           the API alone over a map

Prints a line per case, the differences of each that failed, and the sum.`;

export const golden: Command = { usage: USAGE, run };

async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      dir: { type: 'string' },
      kubeconfig: { type: 'string' },
      memory: { type: 'boolean', default: false },
      kubectl: { type: 'string', default: '32' },
    },
  });
  const dir = values.dir ?? process.env['NODEKEEPER_GOLDEN_DIR'];
  if (dir === undefined) throw new UsageError('no folder of cases: set --dir or NODEKEEPER_GOLDEN_DIR');
  const kubectls = chosenKubectls(values.kubectl);
  const cases = readCases(dir, positionals);

  const server = values.kubeconfig === undefined ? await startServer(values.memory) : undefined;
  const kubeconfig = values.kubeconfig ?? server!.kubeconfig;
  const client = apiClientOf(readKubeconfig(kubeconfig), { connectionsMax: 8, timeoutMs: 30_000 });
  try {
    const { status } = await answerOf(client, { method: 'GET', path: '/apis/policy/v1' }, [200, 404]);
    let failed = 0;
    for (const kubectl of kubectls) {
      for (const each of cases) {
        const result = await replay(each, { kubectl, kubeconfig, client, servesPolicyV1: status === 200 });
        const { problems, durationMs } = result;
        if (problems.length > 0) failed += 1;
        const verdict = problems.length === 0 ? 'ok  ' : 'FAIL';
        console.log(`${verdict} ${kubectl.name} ${each.name}: ${each.about} (${Math.round(durationMs)} ms)`);
        for (const line of problems) console.log(`  ${line}`);
      }
    }
    console.log(`${kubectls.length * cases.length - failed} passed, ${failed} failed`);
    return failed === 0 ? 0 : 1;
  } finally {
    client.close();
    await server?.stop();
  }
}

/** In an emptied cluster. One that cannot be emptied fails the case; the next may get further. */
async function replay(golden: GoldenCase, target: ReplayTarget): Promise<CaseResult> {
  try {
    await emptyCluster(target.client);
  } catch (cause) {
    if (!(cause instanceof AnswerError)) throw cause;
    return { problems: [`the cluster cannot be emptied: ${cause.message}`], durationMs: 0 };
  }
  return await runCase(golden, target);
}

async function startServer(memory: boolean): Promise<{ readonly kubeconfig: string; stop(): Promise<void> }> {
  if (!memory) return await startLocalForTest({ nodes: 0, controllers: false });
  // Only here: it runs the sources directly, while local mode bundles them first.
  const { startMemoryApi } = await import('../support/memory-api.ts');
  return await startMemoryApi();
}

function chosenKubectls(wanted: string): readonly Kubectl[] {
  const all = findKubectls();
  const releases = all.filter((kubectl) => kubectl.name !== 'kubectl');
  const candidates = releases.length > 0 ? releases : all;
  const minors = wanted.split(',').map((release) => Number(release.replace(/^1\./, '')));
  const chosen = wanted === 'all' ? candidates : candidates.filter(({ minor }) => minors.includes(minor));
  if (chosen.length === 0) throw new UsageError(`no such kubectl here: ${wanted}`);
  return chosen;
}
