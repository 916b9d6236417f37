/** Reads the server, authority and token out of a kubeconfig as local mode writes it. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { type ApiClient, createApiClient } from '../../demo/fleet/api-client.ts';

export interface KubeAccess {
  readonly url: string;
  /** PEM text. */
  readonly ca: string | undefined;
  readonly token: string;
}

interface KubeconfigFile {
  readonly 'current-context'?: string;
  readonly contexts?: readonly {
    readonly name: string;
    readonly context: { readonly cluster: string; readonly user: string };
  }[];
  readonly clusters?: readonly {
    readonly name: string;
    readonly cluster: {
      readonly server: string;
      readonly 'certificate-authority'?: string;
      readonly 'certificate-authority-data'?: string;
    };
  }[];
  readonly users?: readonly {
    readonly name: string;
    readonly user: { readonly token?: string; readonly tokenFile?: string };
  }[];
}

export function readKubeconfig(path: string): KubeAccess {
  const file = parse(readFileSync(path, 'utf8')) as KubeconfigFile;
  const context = file.contexts?.find(({ name }) => name === file['current-context'])?.context;
  const cluster = file.clusters?.find(({ name }) => name === context?.cluster)?.cluster;
  const user = file.users?.find(({ name }) => name === context?.user)?.user;
  const beside = (name: string): string => readFileSync(resolve(dirname(path), name), 'utf8');
  const token = user?.token ?? (user?.tokenFile === undefined ? undefined : beside(user.tokenFile).trim());
  if (cluster === undefined || token === undefined) {
    throw new Error(`${path}: the current context names no server or no token`);
  }
  const data = cluster['certificate-authority-data'];
  const caFile = cluster['certificate-authority'];
  const ca =
    data === undefined
      ? caFile === undefined
        ? undefined
        : beside(caFile)
      : Buffer.from(data, 'base64').toString('utf8');
  return { url: cluster.server, ca, token };
}

/** A client for the server of a kubeconfig. */
export function apiClientOf(
  { url, ca, token }: KubeAccess,
  limits: { readonly connectionsMax: number; readonly timeoutMs: number },
): ApiClient {
  return createApiClient({ url, ...(ca !== undefined && { ca }), token, ...limits });
}
