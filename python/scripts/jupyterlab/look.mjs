// Runs the cells of a notebook in JupyterLab, and prints what is to be seen then, in JSON.

import { createRequire } from "node:module";

const { chromium } = createRequire(process.cwd() + "/")("playwright-core");
const [executablePath, server, token, kernel, picture] = process.argv.slice(2);
const CELL = ".jp-Notebook .jp-CodeCell";
const LONGEST = 60_000;

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 2000 } });
page.setDefaultTimeout(LONGEST);
try {
  await page.goto(`${server}/lab/tree/${kernel}.ipynb?token=${token}&reset`);
  await page.waitForSelector(CELL);
  // The bar at the bottom says that the kernel is connected.
  await page.getByText("| Idle").waitFor();
  const names = ["plot", "table", "chart", "input", "widget", "page", "update"];
  for (const [index, name] of names.entries()) {
    await page.locator(CELL).nth(index).locator(".jp-InputArea-editor").click();
    await page.keyboard.press("Control+Enter");
    if (name === "input") {
      await page.fill(".jp-Stdin-input", "Ada");
      await page.keyboard.press("Enter");
    }
    await page.waitForFunction(
      ([cell, at]) => {
        const prompt = document.querySelectorAll(cell)[at].querySelector(".jp-InputPrompt");
        return /\[\d+\]/.test(prompt.textContent);
      },
      [CELL, index],
    );
  }
  await page.waitForSelector(".js-plotly-plot .bars");
  const handle = page.locator(".jp-Notebook .noUi-handle");
  const slider = await handle.waitFor({ timeout: 5000 }).then(() => true, () => false);
  if (slider) {
    await handle.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => document.body.innerText.includes("squared: 81"));
  }
  const outputs = await page.evaluate(
    ([cell, named]) => {
      const cells = [...document.querySelectorAll(cell)];
      const text = (each) => each.querySelector(".jp-OutputArea")?.innerText ?? "";
      return Object.fromEntries(cells.map((each, at) => [named[at], text(each)]));
    },
    [CELL, names],
  );
  const seen = {
    outputs,
    slider,
    picture: (await page.locator(`${CELL} .jp-RenderedImage img`).count()) === 1,
    chart: (await page.locator(".js-plotly-plot .bars").count()) === 1,
    owned: await page.evaluate(() => document.body.dataset.owned !== undefined),
  };
  console.log(JSON.stringify(seen));
} finally {
  await page.screenshot({ path: picture });
  await browser.close();
}
