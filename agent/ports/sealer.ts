/** Makes texts unreadable without a secret of this machine. */
export interface Sealer {
  /** @throws Error when the secret cannot be read */
  seal(text: string): Promise<string>;
  /** Undefined for what was sealed with another secret, or changed. @throws Error when the secret cannot be read */
  open(sealed: string): Promise<string | undefined>;
}
