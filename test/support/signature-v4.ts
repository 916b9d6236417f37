/** Signature Version 4 from the server's side, with nothing of the SDK. Source: AWS General Reference of that name. */
import { createHash, createHmac } from 'node:crypto';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/**
 * The signature that a request must carry, in hex.
 *
 * @param by date: as in X-Amz-Date; canonical: the canonical request
 */
export function signatureOf(by: {
  readonly secretAccessKey: string;
  readonly date: string;
  readonly region: string;
  readonly service: string;
  readonly canonical: string;
}): string {
  const scope = [by.date.slice(0, 8), by.region, by.service, 'aws4_request'];
  const key = scope.reduce<string | Buffer>((made, part) => hmac(made, part), `AWS4${by.secretAccessKey}`);
  return hmac(key, ['AWS4-HMAC-SHA256', by.date, scope.join('/'), sha256(by.canonical)].join('\n')).toString('hex');
}
