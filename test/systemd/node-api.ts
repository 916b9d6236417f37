/** The API of a cluster for one machine, in the process of a story. */
import { randomUUID } from 'node:crypto';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { apiInMemory } from '../support/api-in-memory.ts';
import { startTlsServer } from '../support/tls-server.ts';

/** @param node its credential is the token `node-token` */
export function nodeApi(node: string) {
  const certificates: string[] = [];
  const api = apiInMemory({
    uuid: randomUUID,
    clock: { nowMs: Date.now },
    users: { 'node-token': { name: `system:node:${node}`, groups: ['system:nodes', 'system:authenticated'] } },
    apiAuthorities: () => certificates.join(''),
  });
  const get = async <T>(path: string): Promise<T> => (await api.send('GET', path)).body as T;
  return {
    api,
    /** Of the authorities of its servers. */
    certificates,
    get,
    nodeOf: () => get<KubeNode>(`/api/v1/nodes/${node}`),
    conditionOf: ({ status }: KubeNode, type: string) => status?.conditions?.find((each) => each.type === type),
    async serve() {
      const server = await startTlsServer(async (request, response) => {
        const pieces: Buffer[] = [];
        for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
        const { authorization = '', accept = '', prefer = '' } = request.headers as Record<string, string>;
        const answer = await api.send(request.method ?? '', request.url ?? '', {
          body: Buffer.concat(pieces),
          contentType: request.headers['content-type'] ?? 'application/json',
          accept,
          headers: { authorization, ...(prefer === '' ? {} : { prefer }) },
        });
        response.writeHead(answer.code, { ...answer.headers, date: new Date().toUTCString() }).end(answer.bytes);
      });
      certificates.push(server.certificateAuthority);
      return server;
    },
  };
}
