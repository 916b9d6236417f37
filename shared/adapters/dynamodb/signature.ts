/**
 * AWS Signature Version 4 for the one shape of request we send without the SDK: POST / with a JSON body.
 * Source: IAM User Guide, "Create a signed AWS API request".
 */
import { createHash, createHmac } from 'node:crypto';

export interface SignerOptions {
  readonly region: string;
  readonly service: string;
  /** As in the Host header: with the port when it is not the scheme's own. */
  readonly host: string;
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
}

export interface RequestToSign {
  /** x-amz-target: the operation. */
  readonly target: string;
  readonly body: string;
  readonly nowMs: number;
}

const CONTENT_TYPE = 'application/x-amz-json-1.0';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** The headers of a request. The key of a day is made once; the rest is two hashes and one HMAC. */
export function requestSigner(options: SignerOptions): (request: RequestToSign) => Record<string, string> {
  const { region, service, host, credentials } = options;
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  let keyDay = '';
  let key: Buffer = Buffer.alloc(0);
  return ({ target, body, nowMs }) => {
    const at = new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '');
    const day = at.slice(0, 8);
    if (day !== keyDay) {
      const dayKey = hmac(`AWS4${secretAccessKey}`, day);
      key = hmac(hmac(hmac(dayKey, region), service), 'aws4_request');
      keyDay = day;
    }
    // In the order of their names, as the canonical request wants them.
    const headers: Record<string, string> = {
      'content-type': CONTENT_TYPE,
      host,
      'x-amz-date': at,
      ...(sessionToken === undefined ? {} : { 'x-amz-security-token': sessionToken }),
      'x-amz-target': target,
    };
    const signed = Object.keys(headers).join(';');
    const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
    const canonical = `POST\n/\n\n${lines.join('')}\n${signed}\n${sha256(body)}`;
    const scope = `${day}/${region}/${service}/aws4_request`;
    const signature = hmac(key, `AWS4-HMAC-SHA256\n${at}\n${scope}\n${sha256(canonical)}`).toString('hex');
    headers['authorization'] =
      `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${signed}, Signature=${signature}`;
    return headers;
  };
}
