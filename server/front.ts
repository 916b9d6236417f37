/** The listener of a process, with its certificate: from files of the user, or signed by the authority of its data. */
import { systemClock } from '../shared/clock.ts';
import type { CertifiedKey } from '../shared/host/certificate.ts';
import type { ServerCredentials } from '../shared/host/credentials.ts';
import type { Log } from '../shared/observability/log.ts';
import { followFiles, readCertificate, renewMonthly } from './certificate.ts';
import { type Listener, type ListenerOptions, openListener } from './listener.ts';
import type { ServeOptions } from './options.ts';

/** Where this machine reaches a listener on all of its addresses. */
const REACHED_AT: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

export interface Front {
  readonly listener: Pick<Listener, 'connections' | 'counters' | 'port'>;
  readonly url: string;
  /** Where this machine reaches it. */
  readonly ownUrl: string;
  /** PEM. undefined: the certificate is of the user's own. */
  readonly caPem: string | undefined;
  /** What the listener uses now. */
  certificatePem(): string;
  stop(): Promise<void>;
}

export interface FrontOptions extends Pick<ListenerOptions, 'clientAuthorities' | 'serve'> {
  readonly options: Pick<ServeOptions, 'host' | 'port' | 'certificate'>;
  readonly credentials: ServerCredentials;
  readonly log: Log;
}

/** @throws StartError */
export async function openFront({ options, credentials, ...more }: FrontOptions): Promise<Front> {
  const { host, port, certificate: files } = options;
  const { log } = more;
  let certificate = files === undefined ? credentials.server : readCertificate(files);
  const listener = await openListener({ host, port, ...certificate, ...more });
  const following = {
    use(next: CertifiedKey) {
      listener.setCertificate(next);
      certificate = next;
    },
    log,
  };
  const stopFollowing =
    files === undefined
      ? renewMonthly(() => credentials.signServer(systemClock.nowMs()), following)
      : followFiles(files, following);
  return {
    listener,
    url: `https://${inUrl(host)}:${listener.port}`,
    ownUrl: `https://${inUrl(REACHED_AT[host] ?? host)}:${listener.port}`,
    caPem: files === undefined ? credentials.authority.certificatePem : undefined,
    certificatePem: () => certificate.certificatePem,
    async stop() {
      stopFollowing();
      await listener.stop();
    },
  };
}
