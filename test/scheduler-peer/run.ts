/**
 * npm run scheduler:peer -- --kubernetes DIR [options]
 *
 * Compares our scheduler's rules with the plugins of upstream's kube-scheduler on random clusters: feasible nodes,
 * reasons, scores, candidates of preemption. Exit code 1 on a difference.
 *
 * --kubernetes DIR  source tree of Kubernetes 1.20.2 with its vendor folder and generated files: after one `make`
 * --go PATH         Go 1.16 to 1.19 (default: go)
 * --clusters N      default: 1000
 * --seed N          of the first cluster (default: 1)
 * --dir DIR         of the compiled program and Go's cache (default: a folder that is deleted afterwards)
 * --record FILE     adds the answers of upstream, one line per cluster
 */
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { randomCluster } from './clusters.ts';
import { compareCluster } from './compare.ts';
import { buildPeer, peerAnswers, type RecordedAnswers } from './upstream.ts';

const PRINTED_MAX = 20;

const { values } = parseArgs({
  options: {
    kubernetes: { type: 'string' },
    go: { type: 'string', default: 'go' },
    clusters: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    dir: { type: 'string' },
    record: { type: 'string' },
  },
});

function wholeNumber(name: 'clusters' | 'seed'): number {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  console.error(`--${name} expects a whole number from 1, not ${values[name]}`);
  process.exit(2);
}

if (values.kubernetes === undefined) {
  console.error('--kubernetes must be the source tree of Kubernetes 1.20.2');
  process.exit(2);
}
const clusters = wholeNumber('clusters');
const seed = wholeNumber('seed');
const dir = values.dir ?? mkdtempSync(join(tmpdir(), 'nodekeeper-peer-'));
mkdirSync(dir, { recursive: true });
try {
  const program = buildPeer({ tree: values.kubernetes, go: values.go, dir });
  const seeds = Array.from({ length: clusters }, (_, index) => seed + index);
  const counted = { pods: 0, nodes: 0, rejections: 0, scores: 0, candidates: 0 };
  const bySubject = new Map<string, number>();
  let index = 0;
  let printed = 0;
  for await (const answers of peerAnswers(program, seeds)) {
    const { differences, counted: more } = compareCluster(randomCluster(seeds[index]!), answers);
    for (const name of Object.keys(counted) as (keyof typeof counted)[]) counted[name] += more[name];
    for (const difference of differences) {
      bySubject.set(difference.subject, (bySubject.get(difference.subject) ?? 0) + 1);
      printed += 1;
      if (printed <= PRINTED_MAX) console.log(JSON.stringify({ seed: seeds[index], ...difference }));
    }
    if (values.record !== undefined) {
      const line: RecordedAnswers = { seed: seeds[index]!, answers };
      appendFileSync(values.record, `${JSON.stringify(line)}\n`);
    }
    index += 1;
  }
  console.log(JSON.stringify({ clusters, ...counted, differences: Object.fromEntries(bySubject) }));
  process.exitCode = bySubject.size > 0 ? 1 : 0;
} finally {
  if (values.dir === undefined) rmSync(dir, { recursive: true, force: true });
}
