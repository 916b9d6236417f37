import { createHash } from 'node:crypto';

/** In base64url, as in the tokens that are bound to one request body. */
export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('base64url');
