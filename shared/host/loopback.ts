/** Listeners that only this machine reaches. */
import { type AddressInfo, createServer, type Server } from 'node:net';

/** Listens on loopback and returns the port. 0: any free one. Rejects with the error of the server. */
export const listenOnLoopback = (server: Server, port = 0): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });

/** A port that nothing listened on a moment ago. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  const port = await listenOnLoopback(probe);
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
