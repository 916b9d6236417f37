/** The link between a machine and the cluster: a TCP connection passed through this process, which can be cut. */
import { connect, createServer, type Socket } from 'node:net';

export interface Link {
  /** On the loopback interface. */
  readonly port: number;
  /** Nothing arrives any more, in both directions, and no connection is closed: as when a cable is cut. */
  cut(): void;
  restore(): void;
  readonly isCut: boolean;
  close(): Promise<void>;
}

/** @param target of the cluster @throws Error when no port can be opened */
export async function startLink(target: { readonly host: string; readonly port: number }): Promise<Link> {
  const ends = new Map<Socket, Socket | undefined>();
  let isCut = false;
  const server = createServer((near) => {
    near.on('error', () => near.destroy());
    near.on('close', () => {
      ends.get(near)?.destroy();
      ends.delete(near);
    });
    if (isCut) {
      ends.set(near.pause(), undefined);
      return;
    }
    const far = connect(target);
    ends.set(near, far);
    far.on('error', () => near.destroy());
    far.on('close', () => {
      if (ends.get(near) === far) near.destroy();
    });
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as { readonly port: number }).port,
    get isCut() {
      return isCut;
    },
    cut() {
      isCut = true;
      for (const [near, far] of ends) {
        ends.set(near, undefined);
        if (far === undefined) continue;
        far.unpipe(near).destroy();
        near.unpipe(far).pause();
      }
    },
    restore() {
      isCut = false;
      for (const [near, far] of ends) if (far === undefined) near.destroy();
    },
    close() {
      for (const near of ends.keys()) near.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
