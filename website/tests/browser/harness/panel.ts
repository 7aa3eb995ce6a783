/** The panel as a reader meets it: by the names and roles that assistive technology reads. */

import type {Locator, Page} from 'playwright-core';
import {expect} from 'vitest';

// Continuous integration has a slower machine than most developers.
const ANSWER_MS = 90_000;
const ENDED = /^(done|refused|stopped|cut_off|failed)$/;

/** The panel of one page. */
export class Panel {
  constructor(readonly page: Page) {}

  /** The button that opens the panel. */
  get launcher(): Locator {
    return this.page.getByRole('button', {name: 'Ask RoboTutor', exact: true});
  }

  /** The panel itself. */
  get root(): Locator {
    return this.page.locator('[data-robotutor="panel"]');
  }

  /** The field for a question. */
  get field(): Locator {
    return this.root.getByRole('textbox', {name: 'Ask about this book'});
  }

  /** All questions with their answers, the oldest first. */
  get turns(): Locator {
    return this.root.locator('article[data-robotutor="turn"]');
  }

  /** The latest question with its answer. */
  get turn(): Locator {
    return this.turns.last();
  }

  /** The citations of the latest answer. */
  get citations(): Locator {
    return this.turn.locator('a[data-robotutor="citation"]');
  }

  /** A button of the panel by its name. */
  button(name: string): Locator {
    return this.root.getByRole('button', {name, exact: true});
  }

  /** Opens the panel and waits for its field. */
  async open(): Promise<void> {
    await this.launcher.click();
    await this.field.waitFor();
  }

  /** Waits for the panel after a reload, which may show it again on its own. */
  async reopen(): Promise<void> {
    await expect
      .poll(
        async () => {
          if (!(await this.field.isVisible())) {
            await this.launcher.click({timeout: 500}).catch(() => undefined);
          }
          return this.field.isVisible();
        },
        {timeout: 60_000, interval: 500},
      )
      .toBe(true);
  }

  /** Chooses where to look: the whole book, the module or the page. */
  async chooseScope(name: string): Promise<void> {
    const choice = this.root.getByRole('combobox');
    // The choice appears when the service has named the pages of the book.
    await choice.or(this.root.getByRole('radio', {name})).first().waitFor();
    if (await choice.count()) {
      await choice.selectOption({label: name});
    } else {
      await this.root.getByRole('radio', {name}).check({force: true});
    }
  }

  /** Sends a question and returns at once. */
  async send(question: string): Promise<void> {
    await this.field.fill(question);
    await this.field.press('Enter');
  }

  /** Sends a question and waits until its answer ended; returns the status. */
  async ask(question: string): Promise<string> {
    const before = await this.turns.count();
    await this.send(question);
    await expect.poll(() => this.turns.count(), {timeout: ANSWER_MS}).toBe(before + 1);
    return this.waitForEnd();
  }

  /** Waits until the latest answer ended, in whatever way, and returns its status. */
  async waitForEnd(): Promise<string> {
    await expect
      .poll(() => this.status(), {timeout: ANSWER_MS, message: 'the answer ended'})
      .toMatch(ENDED);
    return this.status();
  }

  /** Waits until the latest answer has a status. */
  async waitForStatus(status: string): Promise<void> {
    await expect.poll(() => this.status(), {timeout: ANSWER_MS, interval: 20}).toBe(status);
  }

  /** Returns the status of the latest answer; empty if nothing was asked. */
  async status(): Promise<string> {
    const turn = this.turns.last();
    return (await this.turns.count()) ? ((await turn.getAttribute('data-status')) ?? '') : '';
  }

  /** Waits until a text can be read in the panel. */
  async waitForText(text: string | RegExp): Promise<void> {
    await this.root.getByText(text).first().waitFor();
  }
}

/** Returns the addresses of links; runs in the browser. */
export function readTargets(links: Element[]): string[] {
  return links.map((link) => (link as HTMLAnchorElement).href);
}
