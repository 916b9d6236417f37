/**
 * npm run workloads:peer -- --kubernetes DIR --etcd PATH [options]
 *
 * Plays the same manifests and kubectl steps against an upstream control plane and against local mode, and compares
 * every object after every step: counts, revisions, conditions, owner references. Exit code 1 on a difference without a
 * known reason.
 *
 * --kubernetes DIR  source tree of Kubernetes 1.20.2 after `make`, or a folder with kube-apiserver,
 *                   kube-controller-manager and kube-scheduler
 * --etcd PATH       etcd 3.4 (default: etcd)
 * --section NAME    only these steps; repeatable (default: all)
 * --list            prints the sections and their steps
 * --dir DIR         of data and logs (default: a folder that is deleted afterwards)
 * --verbose         prints all differences of a step
 * --keep FILE       writes what both sides answered and held, one line of JSON per step
 */
import { appendFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { kubectlOf } from '../support/kubectl.ts';
import { startLocalForTest } from '../support/local.ts';
import { type Difference, groupsOf } from './compare.ts';
import { startMachines } from './machines.ts';
import { detectVersions, NAMESPACE, nameOf, playOnBoth, type Side } from './play.ts';
import { SECTIONS } from './steps.ts';
import { startUpstream } from './upstream.ts';

const MACHINES = ['peer-node-0', 'peer-node-1', 'peer-node-2'];
const KUBECTL_MINOR = 32;
const EVICTION_SECONDS = 5;
const GRACE_SECONDS = 20;

const { values } = parseArgs({
  options: {
    kubernetes: { type: 'string' },
    etcd: { type: 'string', default: 'etcd' },
    section: { type: 'string', multiple: true },
    list: { type: 'boolean', default: false },
    dir: { type: 'string' },
    verbose: { type: 'boolean', default: false },
    keep: { type: 'string' },
  },
});

function fail(message: string): never {
  console.error(message);
  process.exit(2);
}

function chosenSections(): readonly string[] {
  const names = values.section ?? Object.keys(SECTIONS);
  const unknown = names.find((name) => !(name in SECTIONS));
  if (unknown !== undefined) fail(`no such section: ${unknown}; there are ${Object.keys(SECTIONS).join(', ')}`);
  return names;
}

function programsOf(kubernetes: string | undefined): string {
  if (kubernetes === undefined) fail('--kubernetes must be the source tree of Kubernetes 1.20.2, after `make`');
  const found = [join(kubernetes, '_output/local/go/bin'), kubernetes].find((dir) =>
    existsSync(join(dir, 'kube-controller-manager')),
  );
  return found ?? fail(`${kubernetes} has no kube-controller-manager`);
}

const sections = chosenSections();
if (values.list) {
  for (const name of sections) {
    console.log(name);
    for (const step of SECTIONS[name] ?? []) console.log(`  ${nameOf(step)}`);
  }
  process.exit(0);
}

async function runAll(): Promise<readonly Difference[]> {
  const kubectl = kubectlOf(KUBECTL_MINOR) ?? fail('kubectl is missing');
  const programs = programsOf(values.kubernetes);
  const dir = values.dir ?? mkdtempSync(join(tmpdir(), 'nodekeeper-peer-'));
  const closing: (() => Promise<unknown>)[] = [];
  const all: Difference[] = [];
  try {
    const seconds = { evictionSeconds: EVICTION_SECONDS, graceSeconds: GRACE_SECONDS };
    const upstream = await startUpstream({ programs, etcd: values.etcd, dir, ...seconds });
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
      await client.send({ method: 'POST', path: '/api/v1/namespaces', body: namespace });
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
        const open = played.differences.filter(({ reason }) => reason === undefined);
        if (values.keep !== undefined) appendFileSync(values.keep, `${JSON.stringify({ section, ...played })}\n`);
        steps += 1;
        objects += Object.keys(played.upstream.snapshot).length;
        all.push(...played.differences);
        const passed = ((performance.now() - startedMs) / 1_000).toFixed(1);
        const found = open.length === 0 ? 'equal' : `${open.length} differences`;
        console.log(`${passed.padStart(6)} s  ${found.padEnd(15)} ${played.name}`);
        const shown = values.verbose ? open : open.slice(0, 12);
        for (const { object, path, upstream: left, ours: right } of shown) {
          console.log(`          ${object} ${path}\n            upstream ${left}\n            ours     ${right}`);
        }
      }
    }
    console.log(JSON.stringify({ steps, objects, differences: all.length, unexplained: all.filter(isOpen).length }));
    return all;
  } finally {
    for (const close of closing.toReversed()) await close();
    if (values.dir === undefined) rmSync(dir, { recursive: true, force: true });
  }
}

const isOpen = ({ reason }: Difference): boolean => reason === undefined;

const differences = await runAll();
console.log('\n| kind | field | times | reason |\n| --- | --- | --- | --- |');
for (const { kind, path, count, reason } of groupsOf(differences)) {
  console.log(`| ${kind} | ${path === '' ? 'the object' : path} | ${count} | ${reason ?? '**none**'} |`);
}
process.exitCode = differences.some(isOpen) ? 1 : 0;
