/**
 * Compares our scheduler's rules with the plugins of upstream's kube-scheduler on random clusters: feasible nodes,
 * reasons, scores, candidates of preemption.
 */
import { appendFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Command, inFolder, UsageError, wholeNumber } from './command.ts';
import { randomCluster } from './scheduler/clusters.ts';
import { compareCluster } from './scheduler/compare.ts';
import { buildPeer, peerAnswers, type RecordedAnswers } from './scheduler/plugins.ts';

const USAGE = `npm run peer -- scheduler --kubernetes DIR [options]

--kubernetes DIR  source tree of Kubernetes 1.20.2 with its vendor folder and generated files: after one \`make\`
--go PATH         Go 1.16 to 1.19 (default: go)
--clusters N      default: 1000
--seed N          of the first cluster (default: 1)
--dir DIR         of the compiled program and Go's cache (default: a folder that is deleted afterwards)
--record FILE     adds the answers of upstream, one line per cluster

Exit code 1 on a difference.`;
const PRINTED_MAX = 20;

export const scheduler: Command = { usage: USAGE, run };

async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kubernetes: { type: 'string' },
      go: { type: 'string', default: 'go' },
      clusters: { type: 'string', default: '1000' },
      seed: { type: 'string', default: '1' },
      dir: { type: 'string' },
      record: { type: 'string' },
    },
  });
  const { kubernetes: tree, go, record } = values;
  if (tree === undefined) throw new UsageError('--kubernetes must be the source tree of Kubernetes 1.20.2');
  const clusters = wholeNumber('clusters', values.clusters);
  const first = wholeNumber('seed', values.seed);
  return await inFolder(values.dir, async (dir) => {
    const seeds = Array.from({ length: clusters }, (_, index) => first + index);
    const counted = { pods: 0, nodes: 0, rejections: 0, scores: 0, candidates: 0 };
    const bySubject: Record<string, number> = {};
    let printed = 0;
    for await (const { seed, answers } of peerAnswers(buildPeer({ tree, go, dir }), seeds)) {
      const { differences, counted: more } = compareCluster(randomCluster(seed), answers);
      for (const name of Object.keys(counted) as (keyof typeof counted)[]) counted[name] += more[name];
      for (const difference of differences) {
        bySubject[difference.subject] = (bySubject[difference.subject] ?? 0) + 1;
        printed += 1;
        if (printed <= PRINTED_MAX) console.log(JSON.stringify({ seed, ...difference }));
      }
      const line: RecordedAnswers = { seed, answers };
      if (record !== undefined) appendFileSync(record, `${JSON.stringify(line)}\n`);
    }
    console.log(JSON.stringify({ clusters, ...counted, differences: bySubject }));
    return printed > 0 ? 1 : 0;
  });
}
