/**
 * Plays the same manifests and kubectl steps against an upstream control plane and against local mode, and compares
 * every object after every step: counts, revisions, conditions, owner references.
 */
import { appendFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { kubectlOf } from '../support/kubectl.ts';
import { startLocalForTest } from '../support/local.ts';
import { answerOf, type Command, inFolder, UsageError } from './command.ts';
import { startUpstream } from './upstream.ts';
import { type Difference, groupsOf } from './workloads/compare.ts';
import { startMachines } from './workloads/machines.ts';
import { detectVersions, NAMESPACE, nameOf, playOnBoth, type Side } from './workloads/play.ts';
import { SECTIONS } from './workloads/steps.ts';

const USAGE = `npm run peer -- workloads --kubernetes DIR --etcd PATH [options]

--kubernetes DIR  source tree of Kubernetes 1.20.2 after \`make\`, or a folder with kube-apiserver,
                  kube-controller-manager and kube-scheduler
--etcd PATH       etcd 3.4 (default: etcd)
--section NAME    only these steps; repeatable (default: all)
--list            prints the sections and their steps
--dir DIR         of data and logs (default: a folder that is deleted afterwards)
--verbose         prints all differences of a step
--keep FILE       writes what both sides answered and held, one line of JSON per step

Exit code 1 on a difference without a known reason.`;
const MACHINES = ['peer-node-0', 'peer-node-1', 'peer-node-2'];
const KUBECTL_MINOR = 32;
const EVICTION_SECONDS = 5;
const GRACE_SECONDS = 20;
/** Differences of a step that are printed without --verbose. */
const PRINTED_MAX = 12;

export const workloads: Command = { usage: USAGE, run };

interface Play {
  readonly sections: readonly string[];
  readonly kubernetes: string;
  readonly etcd: string;
  readonly dir: string;
  readonly verbose: boolean;
  readonly keep: string | undefined;
}

async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kubernetes: { type: 'string' },
      etcd: { type: 'string', default: 'etcd' },
      section: { type: 'string', multiple: true, default: Object.keys(SECTIONS) },
      list: { type: 'boolean', default: false },
      dir: { type: 'string' },
      verbose: { type: 'boolean', default: false },
      keep: { type: 'string' },
    },
  });
  const { kubernetes, etcd, section: sections, verbose, keep } = values;
  const unknown = sections.find((name) => !(name in SECTIONS));
  if (unknown !== undefined) {
    throw new UsageError(`no such section: ${unknown}; there are ${Object.keys(SECTIONS).join(', ')}`);
  }
  if (values.list) {
    for (const name of sections) console.log([name, ...SECTIONS[name]!.map((step) => `  ${nameOf(step)}`)].join('\n'));
    return 0;
  }
  if (kubernetes === undefined) throw new UsageError('--kubernetes must be Kubernetes 1.20.2, after `make`');
  const differences = await inFolder(values.dir, (dir) => playAll({ sections, kubernetes, etcd, dir, verbose, keep }));
  console.log('\n| kind | field | times | reason |\n| --- | --- | --- | --- |');
  for (const { kind, path, count, reason } of groupsOf(differences)) {
    console.log(`| ${kind} | ${path === '' ? 'the object' : path} | ${count} | ${reason ?? '**none**'} |`);
  }
  return differences.some(isOpen) ? 1 : 0;
}

const isOpen = ({ reason }: Difference): boolean => reason === undefined;

async function playAll({ sections, kubernetes, etcd, dir, verbose, keep }: Play): Promise<readonly Difference[]> {
  const kubectl = kubectlOf(KUBECTL_MINOR);
  if (kubectl === undefined) throw new UsageError('kubectl is missing');
  const closing: (() => Promise<unknown>)[] = [];
  const all: Difference[] = [];
  try {
    const seconds = { evictionSeconds: EVICTION_SECONDS, graceSeconds: GRACE_SECONDS };
    const upstream = await startUpstream({ kubernetes, etcd, dir, ...seconds });
    closing.push(() => upstream.stop());
    const local = await startLocalForTest({
      nodes: 0,
      policy: {
        nodeMonitorGracePeriodSeconds: GRACE_SECONDS,
        podEvictionTimeoutSeconds: EVICTION_SECONDS,
        nodeEvictionRatePerSecond: 1,
      },
    });
    closing.push(() => local.stop());
    const sides: Side[] = [];
    for (const { client, kubeconfig } of [upstream, local]) {
      const machines = await startMachines(client, MACHINES);
      closing.push(() => machines.stop());
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
      await answerOf(client, { method: 'POST', path: '/api/v1/namespaces', body: namespace });
      sides.push({ client, kubeconfig, machines, versions: await detectVersions(client) });
    }
    const [theirs, ours] = sides as [Side, Side];
    let steps = 0;
    let objects = 0;
    for (const section of sections) {
      console.log(`# ${section}`);
      for (const step of SECTIONS[section] ?? []) {
        const startedMs = performance.now();
        const played = await playOnBoth(step, theirs, ours, kubectl);
        const open = played.differences.filter(isOpen);
        if (keep !== undefined) appendFileSync(keep, `${JSON.stringify({ section, ...played })}\n`);
        steps += 1;
        objects += Object.keys(played.upstream.snapshot).length;
        all.push(...played.differences);
        const passed = ((performance.now() - startedMs) / 1_000).toFixed(1);
        const found = open.length === 0 ? 'equal' : `${open.length} differences`;
        console.log(`${passed.padStart(6)} s  ${found.padEnd(15)} ${played.name}`);
        for (const { object, path, upstream: left, ours: right } of verbose ? open : open.slice(0, PRINTED_MAX)) {
          console.log(`          ${object} ${path}\n            upstream ${left}\n            ours     ${right}`);
        }
      }
    }
    console.log(JSON.stringify({ steps, objects, differences: all.length, unexplained: all.filter(isOpen).length }));
    return all;
  } finally {
    for (const close of closing.toReversed()) await close();
  }
}
