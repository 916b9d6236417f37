/**
 * AWS Signature Version 4 for the one kind of request that we send without the SDK: POST / with a text body.
 * Source: IAM User Guide, "Create a signed AWS API request".
 */
import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import type { AwsCredentials } from './connection.ts';

export interface SignerOptions {
  readonly region: string;
  readonly service: string;
  /** The value of the Host header: with the port unless it is the scheme's default. */
  readonly host: string;
  readonly credentials: AwsCredentials;
  readonly contentType: string;
}

export interface RequestToSign {
  /** x-amz-target: the operation, if it is not in the body. */
  readonly target?: string;
  readonly body: string;
  readonly nowMs: number;
}

const sha256 = (text: string): string => hash('sha256', text);
const hmac = (key: string | Buffer | KeyObject, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest();

/** The headers of a request. The signing key is derived once per day; each request needs two hashes and one HMAC. */
export function requestSigner(options: SignerOptions): (request: RequestToSign) => Record<string, string> {
  const { region, service, host, credentials, contentType } = options;
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  let keyDay = '';
  // A key object: from bytes Node creates one for each HMAC, with an internal exception, a tenth of a beat's CPU.
  let key = createSecretKey(Buffer.alloc(0));
  return ({ target, body, nowMs }) => {
    const at = new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '');
    const day = at.slice(0, 8);
    if (day !== keyDay) {
      const dayKey = hmac(`AWS4${secretAccessKey}`, day);
      key = createSecretKey(hmac(hmac(hmac(dayKey, region), service), 'aws4_request'));
      keyDay = day;
    }
    // In the order of their names, as the canonical request requires.
    const headers: Record<string, string> = {
      'content-type': contentType,
      host,
      'x-amz-date': at,
      ...(sessionToken === undefined ? {} : { 'x-amz-security-token': sessionToken }),
      ...(target === undefined ? {} : { 'x-amz-target': target }),
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
