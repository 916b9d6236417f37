import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { staticPodFiles } from './static-pod-files.ts';

let directory: string;
let logged: unknown[][];
let read: () => readonly KubePod[];
let versions: number;

beforeEach(() => {
  directory = folderForTest();
  logged = [];
  versions = 0;
  const log = { error: (...line: unknown[]) => void logged.push(line) } as unknown as Log;
  read = staticPodFiles({ directory, nodeName: 'n1', log, nowMs: () => 0 });
});

const manifest = (name: string, image = 'i') =>
  `apiVersion: v1\nkind: Pod\nmetadata: { name: ${name} }\nspec: { containers: [{ name: c, image: ${image} }] }\n`;
/** Each write has a time of its own, also within one tick of the file system. */
function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text);
  versions += 1;
  utimesSync(join(directory, name), versions, versions);
}
const names = () => read().map(({ metadata }) => metadata.name);
const faults = () => logged.splice(0).map(([message, fields]) => [message, (fields as { why: string }).why]);

describe('the static pods of a machine', () => {
  it('are those of all files of a directory, in order of their names, but of hidden ones', () => {
    write('b.yaml', manifest('b'));
    write('a.json', JSON.stringify({ kind: 'Pod', apiVersion: 'v1', ...podBody('a') }));
    write('.c.yaml', manifest('c'));
    expect(names()).toEqual(['a-n1', 'b-n1']);
    expect(faults()).toEqual([]);
    rmSync(join(directory, 'a.json'));
    expect(names()).toEqual(['b-n1']);
  });

  it('are other pods when their file, their content or their node is another', () => {
    write('a.yaml', manifest('a'));
    const uidOf = (pods = read()) => pods[0]?.metadata.uid;
    const first = uidOf();
    write('a.yaml', `${manifest('a')}\n# the same pod\n`);
    expect(uidOf()).toBe(first);
    write('a.yaml', manifest('a', 'j'));
    const second = uidOf();
    const log = {} as Log;
    const elsewhere = uidOf(staticPodFiles({ directory, nodeName: 'n2', log, nowMs: () => 0 })());
    rmSync(join(directory, 'a.yaml'));
    write('b.yaml', manifest('a', 'j'));
    expect(new Set([first, second, elsewhere, uidOf()]).size).toBe(4);
  });

  it('stay as they were while their file cannot be read, which is logged once', () => {
    write('a.yaml', manifest('a'));
    expect(names()).toEqual(['a-n1']);
    write('a.yaml', 'kind: [');
    for (let round = 0; round < 3; round += 1) expect(names()).toEqual(['a-n1']);
    expect(faults()).toEqual([['static pods cannot be read', expect.stringContaining('a.yaml:1')]]);
    write('a.yaml', manifest('a'));
    expect(names()).toEqual(['a-n1']);
    write('a.yaml', 'kind: [');
    expect(names()).toEqual(['a-n1']);
    expect(faults()).toHaveLength(1);
  });

  it('are not those of a file that is no manifest, too large, or a directory', () => {
    write('config.yaml', 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\n');
    write('large.yaml', `${manifest('large')}#${'x'.repeat(1_024 * 1_024)}`);
    mkdirSync(join(directory, 'folder'));
    const good = `${manifest('good')}#`;
    write('good.yaml', good.padEnd(1_024 * 1_024, 'x'));
    expect(names()).toEqual(['good-n1']);
    const [[, why] = []] = faults();
    expect(why).toMatch(/config\.yaml.*EISDIR.*large\.yaml is larger than 1048576 bytes$/s);
  });

  it('are those of 500 files at most', () => {
    for (let index = 0; index < 501; index += 1) write(`f${1_000 + index}.yaml`, manifest(`p${index}`));
    const read500 = names();
    expect([read500.length, read500.at(-1)]).toEqual([500, 'p499-n1']);
  });

  it('stay as they were while the directory cannot be read', () => {
    write('a.yaml', manifest('a'));
    expect(names()).toEqual(['a-n1']);
    rmSync(directory, { recursive: true });
    expect(names()).toEqual(['a-n1']);
    expect(faults()).toEqual([['static pods cannot be read', expect.stringContaining('ENOENT')]]);
    mkdirSync(directory);
    expect(names()).toEqual([]);
    expect(readdirSync(directory)).toEqual([]);
  });
});

function podBody(name: string) {
  return { metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }] } };
}
