/**
 * Stands for the pods of upstream's webhook tests: simulated machines do not run their image. While such a pod is
 * Running, its program runs on this machine with the certificate of its Secret. The program listens on all addresses,
 * so the addresses of the pods must be those of this machine.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ApiClient } from '../../../demo/fleet/api-client.ts';
import type { KubePod, KubeSecret } from '../../../shared/kinds/types.ts';
import { answerOf, inFolder } from '../command.ts';

/** The label, the Secret and the port of the tests. */
const PODS = '/api/v1/pods?labelSelector=webhook%3Dtrue';
const SECRET = 'sample-webhook-secret';
const PORT = 8444;
const LOOK_EVERY_MS = 300;

/** @param program agnhost. @throws Error when the cluster does not answer */
export async function withWebhookPods(
  program: string,
  client: ApiClient,
  work: () => Promise<number>,
): Promise<number> {
  return await inFolder(undefined, async (dir) => {
    let running: { readonly uid: string; readonly child: ChildProcess } | undefined;
    let isOver = false;
    const result = work().finally(() => {
      isOver = true;
    });
    try {
      while (!isOver) {
        const pod = await runningPod(client);
        if (running !== undefined && running.uid !== pod?.metadata.uid) {
          running.child.kill('SIGKILL');
          running = undefined;
        }
        if (running === undefined && pod !== undefined) running = await started(program, client, pod, dir);
        await Promise.race([result, pause(LOOK_EVERY_MS)]);
      }
      return await result;
    } finally {
      running?.child.kill('SIGKILL');
    }
  });
}

async function runningPod(client: ApiClient): Promise<KubePod | undefined> {
  const { body } = await answerOf(client, { method: 'GET', path: PODS });
  return (body as { readonly items: readonly KubePod[] }).items.find(
    ({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase === 'Running',
  );
}

/** undefined: the Secret was deleted before the pod. */
async function started(program: string, client: ApiClient, { metadata }: KubePod, dir: string) {
  const path = `/api/v1/namespaces/${metadata.namespace}/secrets/${SECRET}`;
  const { status, body } = await answerOf(client, { method: 'GET', path }, [200, 404]);
  if (status === 404) return undefined;
  const [certificate, key] = ['tls.crt', 'tls.key'].map((name) => {
    const file = join(dir, name);
    writeFileSync(file, Buffer.from((body as KubeSecret).data?.[name] ?? '', 'base64'));
    return file;
  });
  const options = [`--tls-cert-file=${certificate}`, `--tls-private-key-file=${key}`, `--port=${PORT}`];
  return { uid: metadata.uid ?? '', child: spawn(program, ['webhook', ...options], { stdio: 'ignore' }) };
}
