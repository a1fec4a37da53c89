/** What a user is found by: the id counts in any case. */
export function userKeyOf(userId: string): string {
  return userId.toLowerCase()
}
