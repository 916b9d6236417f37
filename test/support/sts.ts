/** Stands for STS: answers GetCallerIdentity if it computes the same signature as the request with a known key. */
import { sha256, signatureOf } from './signature-v4.ts';

export interface StsIdentity {
  readonly secretAccessKey: string;
  readonly arn: string;
  readonly account: string;
  readonly userId: string;
}

const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);

/** By access key id. `asked` counts the questions. */
export function standInSts(identities: Readonly<Record<string, StsIdentity>>) {
  let asked = 0;
  let failure: (() => Promise<Response>) | undefined;
  const answer = (status: number, body: unknown): Response => new Response(JSON.stringify(body), { status });
  const ask: typeof fetch = async (input, init) => {
    asked += 1;
    if (failure !== undefined) return failure();
    const url = new URL(String(input));
    const headers: Record<string, string> = Object.fromEntries(new Headers(init?.headers));
    headers['host'] = url.host;
    const query = url.searchParams;
    const [keyId = '', , region = '', service = ''] = (query.get('X-Amz-Credential') ?? '').split('/');
    const identity = identities[keyId];
    if (identity === undefined) return answer(403, { Error: { Code: 'InvalidClientTokenId' } });
    const signedHeaders = query.get('X-Amz-SignedHeaders') ?? '';
    const canonicalQuery = [...query]
      .filter(([name]) => name !== 'X-Amz-Signature')
      .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
      .sort()
      .join('&');
    const lines = signedHeaders.split(';').map((name) => `${name}:${headers[name] ?? ''}\n`);
    const canonical = `GET\n/\n${canonicalQuery}\n${lines.join('')}\n${signedHeaders}\n${sha256('')}`;
    const date = query.get('X-Amz-Date') ?? '';
    const { secretAccessKey } = identity;
    if (signatureOf({ secretAccessKey, date, region, service, canonical }) !== query.get('X-Amz-Signature')) {
      return answer(403, { Error: { Code: 'SignatureDoesNotMatch' } });
    }
    return answer(200, {
      GetCallerIdentityResponse: {
        GetCallerIdentityResult: { Account: identity.account, Arn: identity.arn, UserId: identity.userId },
        ResponseMetadata: { RequestId: '1' },
      },
    });
  };
  return {
    fetch: ask,
    asked: () => asked,
    /** What every question gets from now on; undefined: real answers again. */
    fail(how: (() => Promise<Response>) | undefined): void {
      failure = how;
    },
  };
}
