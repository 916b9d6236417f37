/** Reads static pods from the files of a directory. Source: upstream pkg/kubelet/config/file.go. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { KUBERNETES_YAML, readYaml } from '../../../shared/config/yaml-documents.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import type { Log } from '../../../shared/observability/log.ts';
import { podsOf } from '../../rules/pod-manifest.ts';
import { staticPod } from '../../rules/static-pod.ts';

const FILE_BYTES_MAX = 1_024 * 1_024;
const FILES_MAX = 500;

export interface StaticPodFilesOptions {
  readonly directory: string;
  readonly nodeName: string;
  readonly log: Log;
  readonly nowMs: () => number;
}

/** Returns the current static pods. A file that cannot be read keeps the pods of its last good content. */
export function staticPodFiles({ directory, nodeName, log, nowMs }: StaticPodFilesOptions): () => readonly KubePod[] {
  let known = new Map<string, { readonly stamp: string; readonly pods: readonly KubePod[] }>();
  let reported = '';

  /** Logs each fault once. */
  function report(faults: readonly string[]): void {
    const text = faults.join('; ');
    if (text !== '' && text !== reported) log.error('static pods cannot be read', { directory, why: text });
    reported = text;
  }

  function readFile(name: string, faults: string[]) {
    const path = join(directory, name);
    const before = known.get(name);
    try {
      const { size, mtimeMs, ino } = statSync(path);
      const stamp = `${size} ${mtimeMs} ${ino}`;
      if (before?.stamp === stamp) return before;
      if (size > FILE_BYTES_MAX) throw new Error(`${path} is larger than ${FILE_BYTES_MAX} bytes`);
      return { stamp, pods: podsIn(readFileSync(path, 'utf8'), path) };
    } catch (cause) {
      faults.push((cause as Error).message);
      return before;
    }
  }

  /** @throws Error for a file that is no manifest */
  function podsIn(text: string, path: string): readonly KubePod[] {
    const read = readYaml(text, path, KUBERNETES_YAML);
    if (read.kind === 'malformed')
      throw new Error(read.faults.map(({ at, message }) => `${at}: ${message}`).join('; '));
    const { pods, faults } = podsOf(read.documents);
    if (faults.length > 0) throw new Error(faults.map(({ at, message }) => `${at}: ${message}`).join('; '));
    return pods.map((pod) => {
      const hash = createHash('md5').update(`host:${nodeName}file:${path}${JSON.stringify([pod.metadata, pod.spec])}`);
      return staticPod(pod as KubePod, nodeName, hash.digest('hex'), formatTime(nowMs()));
    });
  }

  return () => {
    const faults: string[] = [];
    try {
      const names = readdirSync(directory).filter((name) => !name.startsWith('.'));
      const read = names
        .sort()
        .slice(0, FILES_MAX)
        .flatMap((name) => {
          const file = readFile(name, faults);
          return file === undefined ? [] : [[name, file] as const];
        });
      known = new Map(read);
    } catch (cause) {
      faults.push((cause as Error).message);
    }
    report(faults);
    return [...known.values()].flatMap(({ pods }) => pods);
  };
}
