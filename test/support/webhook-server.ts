/** An admission webhook of a test: HTTPS on loopback, with an authority of its own. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { makeAuthority, makeServerCertificate } from '../../shared/host/certificate.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';

export interface Review {
  readonly uid: string;
  readonly operation: string;
  readonly name: string;
  readonly namespace: string;
  readonly dryRun: boolean;
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly resource: { readonly group: string; readonly version: string; readonly resource: string };
  readonly requestKind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly subResource: string;
  readonly userInfo: { readonly username: string; readonly groups: readonly string[] };
  readonly object: KubeObject | null;
  readonly oldObject: KubeObject | null;
  readonly options: unknown;
}

/** Members of the response besides its uid. */
export type Respond = (request: Review) => object | Promise<object>;
/** Answers as it likes. */
export type Answer = (answer: ServerResponse, request: Review, received: IncomingMessage) => void;

export interface WebhookServerForTest {
  readonly port: number;
  /** `https://127.0.0.1:PORT` */
  readonly url: string;
  /** Base64 of PEM. */
  readonly caBundle: string;
  /** Base64 of PEM: the server's certificate alone. */
  readonly ownBundle: string;
  /** By path. */
  readonly respond: Map<string, Respond>;
  readonly answer: Map<string, Answer>;
  /** Every review, with its path. */
  readonly reviews: { readonly path: string; readonly request: Review }[];
  readonly serverNames: Set<string>;
  stop(): Promise<void>;
}

export async function startWebhookServer(): Promise<WebhookServerForTest> {
  const nowMs = Date.now();
  const authority = await makeAuthority({ commonName: 'webhook authority', nowMs, validDays: 2 });
  const names = ['127.0.0.1', 'hook.default.svc', 'localhost'];
  const { certificatePem, privateKeyPem } = await makeServerCertificate(authority, { names, nowMs, validDays: 1 });
  const respond = new Map<string, Respond>();
  const answer = new Map<string, Answer>();
  const reviews: WebhookServerForTest['reviews'] = [];
  const serverNames = new Set<string>();
  const server = createServer({ cert: certificatePem, key: privateKeyPem }, (received, response) => {
    const chunks: Buffer[] = [];
    received.on('data', (chunk: Buffer) => chunks.push(chunk));
    received.on('end', async () => {
      const path = (received.url ?? '').split('?')[0] ?? '';
      const { request } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { request: Review };
      reviews.push({ path, request });
      const special = answer.get(path);
      if (special !== undefined) return special(response, request, received);
      const more = (await respond.get(path)?.(request)) ?? { allowed: true };
      return sendReview(response, { uid: request.uid, ...more });
    });
  });
  server.on('secureConnection', (socket) => {
    if (socket.servername) serverNames.add(socket.servername);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `https://127.0.0.1:${port}`,
    caBundle: Buffer.from(authority.certificatePem).toString('base64'),
    ownBundle: Buffer.from(certificatePem).toString('base64'),
    respond,
    answer,
    reviews,
    serverNames,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function sendReview(answer: ServerResponse, response: object): void {
  answer.setHeader('content-type', 'application/json');
  answer.end(JSON.stringify({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', response }));
}

export const jsonPatch = (operations: readonly object[]): object => ({
  allowed: true,
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
});
