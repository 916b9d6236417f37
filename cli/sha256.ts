/** SHA-256, or its HMAC where there is a secret, in the form that the signer of the AWS SDK wants it. */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';

export class Sha256 {
  #hash: Hash | Hmac;
  readonly #secret: string | Uint8Array | undefined;
  constructor(secret?: string | Uint8Array | ArrayBuffer) {
    this.#secret = secret instanceof ArrayBuffer ? new Uint8Array(secret) : secret;
    this.#hash = this.#begun();
  }
  #begun(): Hash | Hmac {
    return this.#secret === undefined ? createHash('sha256') : createHmac('sha256', this.#secret);
  }
  update(data: string | Uint8Array): void {
    this.#hash.update(data);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {
    this.#hash = this.#begun();
  }
}
